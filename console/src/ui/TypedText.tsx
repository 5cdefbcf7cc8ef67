import { useEffect, useEffectEvent, useRef, useState } from 'react'

const PAUSE_MS = 300

interface Props {
  id: string
  'aria-describedby': string | undefined
  'aria-invalid': true | undefined
  type?: 'search' | 'text' | 'datetime-local'
  placeholder?: string
  maxLength?: number
  value: string
  onChange: (value: string) => void
}

/** A text that counts when one pauses, not with every letter. */
export function TypedText({ value, onChange, ...rest }: Props) {
  const [typed, setTyped] = useState(value)
  const told = useRef(value)
  const tell = useEffectEvent((text: string) => {
    told.current = text
    onChange(text)
  })
  // What was changed elsewhere, as by clearing the filters, is shown; what was told from here may be behind the typing.
  useEffect(() => {
    if (value === told.current) return
    told.current = value
    setTyped(value)
  }, [value])
  useEffect(() => {
    const text = typed.trim()
    if (text === told.current) return
    const timer = setTimeout(() => tell(text), PAUSE_MS)
    return () => clearTimeout(timer)
  }, [typed])
  return <input {...rest} value={typed} spellCheck={false} onChange={(event) => setTyped(event.target.value)} />
}
