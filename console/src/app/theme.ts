/** Light, dark, or as the system is; kept in the browser. */

import { keep, kept } from '../ui/storage'

const PLACE = 'graticule-theme'
export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

export function keptTheme(): Theme {
  const value = kept('localStorage', PLACE)
  return THEMES.find((theme) => theme === value) ?? 'system'
}

export function keepTheme(theme: Theme): void {
  keep('localStorage', PLACE, theme)
}

export function applyTheme(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}
