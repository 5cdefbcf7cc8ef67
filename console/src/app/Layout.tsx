import { useEffect, useRef, type ReactNode, type RefObject } from 'react'
import { NavLink, useLocation, useNavigationType } from 'react-router'

import { useLive } from '../live/live'
import { useSession } from '../session/session'
import { SignOut } from '../session/SignOut'
import { shared } from '../texts/shared'
import { shell } from '../texts/shell'
import { Notice } from '../ui/notices'
import { ThemeChoice } from './ThemeChoice'
import { VIEWS } from './views'

export function Layout({ children }: { children: ReactNode }) {
  const { state } = useLive()
  const content = useRef<HTMLElement>(null)
  useTitle()
  useArrival(content)
  return (
    <div className="frame">
      <a className="skip" href="#content">
        {shell.skip}
      </a>
      <header className="frame-top">
        <NavLink to="/" className="brand">
          <img src="/static/icon.svg" alt="" width="24" height="24" />
          {shell.name}
        </NavLink>
        <Navigation />
        <Account />
      </header>
      <div role="status">
        {state === 'lost' && (
          <Notice kind="warning" isWithinStatus>
            {shell.lost}
          </Notice>
        )}
      </div>
      <main id="content" tabIndex={-1} ref={content}>
        <Told />
        {children}
      </main>
    </div>
  )
}

/** What the page before has to say of this one, such as that it was there already. */
function Told() {
  const state: unknown = useLocation().state
  if (typeof state !== 'object' || state === null || !('notice' in state)) return null
  return <Notice kind="info">{String(state.notice)}</Notice>
}

function Navigation() {
  const { may } = useSession()
  return (
    <nav aria-label={shell.navigation}>
      {VIEWS.filter((view) => may(view.deed)).map((view) => (
        <NavLink key={view.path} to={view.path} end={view.path === '/'}>
          {shell.views[view.name]}
        </NavLink>
      ))}
    </nav>
  )
}

function Account() {
  const { caller } = useSession()
  if (caller === null) return null
  const roles = caller.roles.map((role) => shared.roles[role] ?? role).join(', ')
  return (
    <div className="account">
      <LiveSign />
      <ThemeChoice />
      <span className="who">{shell.signedInAs(caller.name, roles)}</span>
      <SignOut kind="quiet" />
    </div>
  )
}

function LiveSign() {
  const { state } = useLive()
  if (state !== 'live' && state !== 'polling') return null
  const [text, hint] = state === 'live' ? [shell.live, shell.liveHint] : [shell.polling, shell.pollingHint]
  return (
    <span className={`badge tone-${state === 'live' ? 'good' : 'idle'}`} title={hint} data-live={state}>
      {text}
    </span>
  )
}

/** Whoever follows a link to another page begins at its top, also with the keyboard. */
function useArrival(content: RefObject<HTMLElement | null>) {
  const { pathname } = useLocation()
  const isLink = useNavigationType() === 'PUSH'
  const before = useRef(pathname)
  useEffect(() => {
    if (before.current === pathname) return
    before.current = pathname
    if (!isLink) return
    window.scrollTo(0, 0)
    content.current?.focus({ preventScroll: true })
  }, [pathname, isLink, content])
}

function useTitle() {
  const { pathname } = useLocation()
  useEffect(() => {
    const view = VIEWS.find(({ path }) => (path === '/' ? pathname === '/' : pathname.startsWith(path)))
    document.title = view ? `${shell.views[view.name]} · ${shell.name}` : shell.name
  }, [pathname])
}
