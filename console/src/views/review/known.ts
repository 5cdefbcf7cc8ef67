/** Gathers what is known of the version under review and of the one in service. */

import { useQuery } from '@tanstack/react-query'

import { metadata } from '../../data/assets'
import { reportOf } from '../../data/report'
import { previewOf, serviceOf, type Place } from '../../map'
import { useSession } from '../../session/session'
import type { Known } from './Comparison'
import { useFeaturesTold, useRasterTold } from './documents'
import type { InService, UnderReview } from './underReview'

export interface BothKnown {
  here: Known
  there: Known | null
  /** Where each is seen; null where it cannot be, or not by this caller. */
  places: { here: Place | null; there: Place | null }
  /** What the services refused, if anything. */
  error: Error | null
}

export function useKnown(under: UnderReview): BothKnown {
  const { asset, inService } = under
  const { view, may } = useSession()
  const places = {
    here: view.services && may('review') ? previewPlace(under) : null,
    there: view.services && inService ? serviceOf(asset.asset_id, asset.data_type, inService) : null,
  }
  const ours = useTold(under, places.here)
  const theirs = useTold(under, places.there)
  const ourDescription = useQuery(metadata(asset.asset_id, under.version.version_ordinal))
  const theirDescription = useQuery({
    ...metadata(asset.asset_id, inService?.ordinal ?? 0),
    enabled: inService !== null,
  })
  return {
    here: { ...ofVersion(under), ...ours.told, description: ourDescription.data },
    there: inService && { ...ofService(inService), ...theirs.told, description: theirDescription.data },
    places,
    error: ours.error ?? theirs.error,
  }
}

/** A preview shows what was made: there is none before, nor of what is made anew. */
function previewPlace({ asset, version }: UnderReview): Place | null {
  if (version.processing_state !== 'completed' || version.deleted_at || asset.deleted_at) return null
  return previewOf(asset.asset_id, version.version_ordinal, version.revision ?? 1)
}

function useTold({ asset }: UnderReview, place: Place | null) {
  const isRaster = asset.data_type === 'raster'
  const raster = useRasterTold(isRaster ? place : null)
  const features = useFeaturesTold(isRaster ? null : place)
  return { told: { raster: raster.data, features: features.data }, error: raster.error ?? features.error }
}

function ofVersion({ version }: UnderReview) {
  return {
    ordinal: version.version_ordinal,
    label: version.version_label,
    revision: version.revision ?? 1,
    bbox: version.bbox ?? null,
    contentHash: version.content_hash ?? null,
    outputHash: version.output_hash ?? null,
    report: reportOf(version),
  }
}

function ofService({ isLatest: _, validation, ...served }: InService) {
  return { ...served, report: validation }
}
