/** Which view an address shows, and who may see it. */

import { lazy, Suspense, type ComponentType } from 'react'
import { Link, Navigate, Route, Routes, useLocation } from 'react-router'

import { useSession, type Deed } from '../session/session'
import { shell } from '../texts/shell'
import { Button } from '../ui/Button'
import { Failsafe } from '../ui/Failsafe'
import { Loading, Notice } from '../ui/notices'

type ViewName = keyof typeof shell.views

/** The views in the order of the navigation, and the deed that one must be allowed for each. */
export const VIEWS: readonly { name: ViewName; path: string; deed: Deed }[] = [
  { name: 'overview', path: '/', deed: 'operate' },
  { name: 'jobs', path: '/jobs', deed: 'operate' },
  { name: 'workflows', path: '/workflows', deed: 'operate' },
  { name: 'review', path: '/review', deed: 'inspect' },
  { name: 'assets', path: '/assets', deed: 'inspect' },
  { name: 'operations', path: '/operations', deed: 'operate' },
]

const PAGES: readonly { path: string; deed: Deed; Page: ComponentType }[] = [
  { path: '/', deed: 'operate', Page: lazy(() => import('../views/overview/OverviewPage')) },
  { path: '/jobs', deed: 'operate', Page: lazy(() => import('../views/jobs/JobsPage')) },
  { path: '/jobs/:jobId', deed: 'operate', Page: lazy(() => import('../views/job/JobPage')) },
  { path: '/workflows', deed: 'operate', Page: lazy(() => import('../views/workflows/WorkflowsPage')) },
  { path: '/workflows/:workflowId', deed: 'operate', Page: lazy(() => import('../views/workflows/WorkflowPage')) },
  { path: '/review', deed: 'inspect', Page: lazy(() => import('../views/review/ReviewQueuePage')) },
  { path: '/review/:assetId/:ordinal', deed: 'inspect', Page: lazy(() => import('../views/review/ReviewPage')) },
  { path: '/assets', deed: 'inspect', Page: lazy(() => import('../views/assets/AssetsPage')) },
  { path: '/assets/:assetId', deed: 'inspect', Page: lazy(() => import('../views/assets/AssetPage')) },
  { path: '/operations', deed: 'operate', Page: lazy(() => import('../views/operations/OperationsPage')) },
]

export function Views() {
  const { may } = useSession()
  const { pathname } = useLocation()
  return (
    <Failsafe key={pathname} instead={<Broken />}>
      <Suspense fallback={<Loading />}>
        <Routes>
          {PAGES.map(({ path, deed, Page }) => (
            <Route key={path} path={path} element={may(deed) ? <Page /> : <NotAllowed path={path} />} />
          ))}
          <Route path="*" element={<Nothing text={shell.notFound} />} />
        </Routes>
      </Suspense>
    </Failsafe>
  )
}

/** Whoever may not see the first page is led to the first one that they may see. */
function NotAllowed({ path }: { path: string }) {
  const { may } = useSession()
  const first = VIEWS.find((view) => may(view.deed))
  if (path === '/' && first) return <Navigate to={first.path} replace />
  return <Nothing text={shell.notAllowed} />
}

function Broken() {
  return (
    <Notice kind="error">
      <span>{shell.broken}</span>
      <Button onClick={() => window.location.reload()}>{shell.reload}</Button>
    </Notice>
  )
}

function Nothing({ text }: { text: string }) {
  return (
    <Notice kind="warning">
      {text} <Link to="/">{shell.home}</Link>
    </Notice>
  )
}
