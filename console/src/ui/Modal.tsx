import { useLayoutEffect, useRef, type ReactNode } from 'react'

interface Props {
  label: string
  role?: 'dialog' | 'alertdialog'
  className?: string
  /** While it is held, Escape does not close it. */
  isHeld?: boolean
  onClose: () => void
  children: ReactNode
}

/** A dialog above the page, which gives the focus back to where it was. */
export function Modal({ label, role, className = '', isHeld = false, onClose, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)

  // The browser gives the focus back only where a dialog is closed before it is taken away.
  useLayoutEffect(() => {
    const shown = dialog.current
    shown?.showModal()
    return () => shown?.close()
  }, [])

  /** Browsers let nobody prevent a second Escape, so a dialog that is held is opened again. */
  function closed() {
    if (dialog.current === null || dialog.current.open) return
    if (isHeld) dialog.current.showModal()
    else onClose()
  }

  return (
    <dialog
      ref={dialog}
      role={role}
      className={`dialog ${className}`}
      aria-label={label}
      onCancel={(event) => isHeld && event.preventDefault()}
      onClose={closed}
    >
      {children}
    </dialog>
  )
}
