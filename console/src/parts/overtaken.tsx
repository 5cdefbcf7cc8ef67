/** Changes of an asset, made against the state of it that a person has seen. */

import { useQueryClient } from '@tanstack/react-query'
import { useState, type ReactNode } from 'react'

import type { Asset, AssetVersion } from '../api/model'
import { Problem } from '../api/problem'
import { readAsset, readVersions } from '../data/assets'
import { assets } from '../texts/assets'
import { parts } from '../texts/parts'
import { Button } from '../ui/Button'
import { Notice } from '../ui/notices'
import { KeyValues, StateBadge } from '../ui/parts'

const texts = parts.overtaken

/** How an asset, and the version that is spoken of, stand. */
export interface Standing {
  asset: Asset
  version: AssetVersion | null
}

const TOUCHED = new Set(['assets', 'reviews', 'overview'])

/**
 * Gives what makes a change. It is refused where someone else was faster; how it stands by then is read and given, and
 * the next attempt counts for that. What was changed is read anew, whoever changed it.
 */
export function useChange(first: Asset, ordinal: number | null) {
  const client = useQueryClient()
  const [seen, setSeen] = useState(first.version)
  const [now, setNow] = useState<Standing | null>(null)
  const { asset_id: assetId } = first

  const refresh = () =>
    client.invalidateQueries({
      predicate: ({ queryKey: [kind, id] }) => TOUCHED.has(String(kind)) || (kind === 'asset' && id === assetId),
    })

  async function change<Done>(deed: (expected: number) => Promise<Done>): Promise<Done> {
    setNow(null)
    try {
      const done = await deed(seen)
      await refresh()
      return done
    } catch (problem) {
      if (!isStale(problem) && !isOfAnotherRevision(problem)) throw problem
      const standing = await readStanding(assetId, ordinal)
      setSeen(standing.asset.version)
      setNow(standing)
      void refresh()
      throw isOfAnotherRevision(problem) ? new Problem(409, problem.code, texts.otherRevision) : problem
    }
  }

  return { change, now }
}

function isStale(problem: unknown): boolean {
  return problem instanceof Problem && problem.code === 'stale_version'
}

/** A decision counts for the revision that was looked at; to repeat it against another one would not help. */
function isOfAnotherRevision(problem: unknown): problem is Problem {
  return problem instanceof Problem && problem.code === 'revision_changed'
}

async function readStanding(assetId: string, ordinal: number | null): Promise<Standing> {
  const asset = await readAsset(assetId)
  const versions = ordinal === null ? [] : await readVersions(assetId, ordinal)
  return { asset, version: versions.find((each) => each.version_ordinal === ordinal) ?? null }
}

interface OvertakenProps {
  now: Standing | null
  /** The revision that was looked at, and the one in its place now; where a decision is about one. */
  revisions?: { seen: number; there: number | null | undefined }
  /** Leaves the dialog for what is there now. */
  onLoad?: () => void
}

/** Tells whoever was overtaken how it stands now. */
export function Overtaken({ now, revisions, onLoad }: OvertakenProps) {
  if (now === null) return null
  const there = revisions?.there
  const isOther = typeof there === 'number' && there !== revisions?.seen
  return (
    <Notice kind="warning">
      <strong>{texts.title}</strong>
      {now.asset.deleted_at && <span>{texts.unpublished}</span>}
      {isOther && <span>{texts.looked(revisions!.seen, there)}</span>}
      <KeyValues items={factsOf(now)} />
      {isOther && onLoad && <Button onClick={onLoad}>{texts.load(there)}</Button>}
    </Notice>
  )
}

function factsOf({ asset, version }: Standing): [string, ReactNode][] {
  const latest = asset.latest_approved_version_ordinal
  const ofAsset: [string, ReactNode][] = [
    [texts.inService, typeof latest === 'number' ? texts.version(latest) : texts.none],
    [texts.clearance, <StateBadge key="clearance" state={asset.clearance_state} />],
    [texts.addresses, assets.urlModes[asset.url_mode] ?? asset.url_mode],
  ]
  if (version === null) return ofAsset
  return [[texts.version(version.version_ordinal), <State key="version" version={version} />], ...ofAsset]
}

function State({ version }: { version: AssetVersion }) {
  const isMade = version.processing_state === 'completed'
  const state = version.deleted_at ? 'deleted' : isMade ? version.approval_state : version.processing_state
  return (
    <>
      <StateBadge state={state} /> {texts.revision(version.revision)}
    </>
  )
}
