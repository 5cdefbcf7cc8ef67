import { shortId } from '../ui/format'
import { CopyButton } from '../ui/parts'
import './parts.css'

/** A hash by its beginning, to copy as a whole. */
export function Hash({ hash, of }: { hash: string | null | undefined; of: string }) {
  if (!hash) return null
  return (
    <span className="hash">
      <code title={hash}>{shortId(hash)}</code> <CopyButton text={hash} of={of} />
    </span>
  )
}
