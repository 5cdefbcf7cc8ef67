import { CopyButton } from '../../ui/parts'
import { shortId } from '../../ui/format'

/** A hash by its beginning, to copy as a whole. */
export function Hash({ hash, of }: { hash: string | null | undefined; of: string }) {
  if (!hash) return null
  return (
    <span className="assets-code assets-line">
      <code title={hash}>{shortId(hash)}</code> <CopyButton text={hash} of={of} />
    </span>
  )
}
