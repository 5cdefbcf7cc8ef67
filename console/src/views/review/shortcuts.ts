/** Single keys that do something on a page. They can be turned off: who dictates to a computer may press some. */

import { useEffect, useState } from 'react'

import { keep, kept } from '../../ui/storage'

const PLACE = 'graticule-shortcuts'
const OFF = 'off'
const TYPED_INTO = 'input, textarea, select, [contenteditable]'

export type Shortcuts = Record<string, (() => void) | undefined>

/** Does what a key is for, but not while someone types, holds a modifier, or has a dialog open. */
export function useShortcuts(shortcuts: Shortcuts, isOn: boolean): void {
  useEffect(() => {
    if (!isOn) return
    const hear = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isElsewhere(event)) return
      const deed = Object.hasOwn(shortcuts, event.key) ? shortcuts[event.key] : undefined
      if (!deed) return
      event.preventDefault()
      deed()
    }
    document.addEventListener('keydown', hear)
    return () => document.removeEventListener('keydown', hear)
  }, [shortcuts, isOn])
}

function isElsewhere({ target }: KeyboardEvent): boolean {
  const typed = target instanceof Element && target.closest(TYPED_INTO)
  return Boolean(typed) || document.querySelector('dialog[open]') !== null
}

/** Whether shortcuts are wanted; kept in the browser. */
export function useShortcutChoice(): [boolean, (isOn: boolean) => void] {
  const [isOn, setIsOn] = useState(() => kept('localStorage', PLACE) !== OFF)
  const choose = (wanted: boolean) => {
    keep('localStorage', PLACE, wanted ? null : OFF)
    setIsOn(wanted)
  }
  return [isOn, choose]
}
