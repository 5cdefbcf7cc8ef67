import { useState } from 'react'

import { shell } from '../texts/shell'
import { applyTheme, keepTheme, keptTheme, THEMES, type Theme } from './theme'

export function ThemeChoice() {
  const [theme, setTheme] = useState(keptTheme)

  function choose(wanted: Theme) {
    setTheme(wanted)
    keepTheme(wanted)
    applyTheme(wanted)
  }

  return (
    <select aria-label={shell.theme.label} value={theme} onChange={(event) => choose(event.target.value as Theme)}>
      {THEMES.map((each) => (
        <option key={each} value={each}>
          {shell.theme[each]}
        </option>
      ))}
    </select>
  )
}
