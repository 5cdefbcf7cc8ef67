import { Component, type ReactNode } from 'react'

interface Props {
  /** What is shown where the content has failed. */
  instead: ReactNode
  children: ReactNode
}

/** Keeps a fault of its content from taking the whole page with it. */
export class Failsafe extends Component<Props, { failed: boolean }> {
  state = { failed: false }

  static getDerivedStateFromError() {
    return { failed: true }
  }

  render() {
    return this.state.failed ? this.props.instead : this.props.children
  }
}
