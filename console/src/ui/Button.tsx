import type { ButtonHTMLAttributes } from 'react'

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: 'plain' | 'primary' | 'danger' | 'quiet'
  /** While its deed is under way it cannot be done again. */
  busy?: boolean
}

export function Button({ kind = 'plain', busy = false, disabled, className = '', ...rest }: Props) {
  return (
    <button
      type="button"
      {...rest}
      className={`button ${kind} ${className}`}
      disabled={disabled || busy}
      aria-busy={busy || undefined}
    />
  )
}
