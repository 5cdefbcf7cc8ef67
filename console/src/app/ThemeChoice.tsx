import { useEffect, useState } from 'react'

import { shell } from '../texts/shell'

const PLACE = 'graticule-theme'
const CHOICES = ['system', 'light', 'dark'] as const
type Choice = (typeof CHOICES)[number]

/** Light, dark, or as the system is; kept in the browser. */
export function ThemeChoice() {
  const [choice, setChoice] = useState<Choice>(kept)
  useEffect(() => {
    localStorage.setItem(PLACE, choice)
    if (choice === 'system') delete document.documentElement.dataset.theme
    else document.documentElement.dataset.theme = choice
  }, [choice])
  return (
    <select
      aria-label={shell.theme.label}
      value={choice}
      onChange={(event) => setChoice(event.target.value as Choice)}
    >
      {CHOICES.map((each) => (
        <option key={each} value={each}>
          {shell.theme[each]}
        </option>
      ))}
    </select>
  )
}

function kept(): Choice {
  const value = localStorage.getItem(PLACE)
  return CHOICES.find((choice) => choice === value) ?? 'system'
}
