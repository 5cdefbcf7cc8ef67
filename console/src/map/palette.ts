/** The colours of maps. They stand in map.css, in light and in dark; MapLibre has to be told them as numbers. */

import { useMemo, useSyncExternalStore } from 'react'

const NAMES = ['sea', 'land', 'coast', 'grid', 'frame', 'feature', 'feature-line', 'selected'] as const
const DARK = '(prefers-color-scheme: dark)'

export type Palette = Record<(typeof NAMES)[number], string>

/** The colours as they are now, and others when the theme changes. */
export function usePalette(): Palette {
  const theme = useSyncExternalStore(onTheme, themeNow)
  return useMemo(() => readPalette(theme), [theme])
}

function themeNow(): string {
  return document.documentElement.dataset.theme ?? (matchMedia(DARK).matches ? 'dark' : 'light')
}

function onTheme(listener: () => void): () => void {
  const system = matchMedia(DARK)
  const chosen = new MutationObserver(listener)
  chosen.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] })
  system.addEventListener('change', listener)
  return () => {
    chosen.disconnect()
    system.removeEventListener('change', listener)
  }
}

/** A variable of CSS is text until an element has it as its colour. */
function readPalette(theme: string): Palette {
  const probe = document.createElement('span')
  probe.hidden = true
  probe.style.colorScheme = theme
  document.body.append(probe)
  const colour = (name: string) => {
    probe.style.color = `var(--map-${name})`
    return getComputedStyle(probe).color
  }
  const palette = Object.fromEntries(NAMES.map((name) => [name, colour(name)])) as Palette
  probe.remove()
  return palette
}
