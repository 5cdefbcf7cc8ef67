/** The things that the APIs speak of, by their names. */

import type { components as Gateway } from './gateway'
import type { components as Orchestrator } from './orchestrator'

type G = Gateway['schemas']
type O = Orchestrator['schemas']

export type Job = O['Job']
export type JobDetail = G['JobDetail']
export type JobListItem = G['JobListItem']
export type JobStatus = G['JobStatus']
export type NodeListItem = G['NodeListItem']
export type NodeStatus = G['NodeStatus']
export type NodeDetail = O['NodeDetail']
export type Attempt = O['Attempt']
export type Timeline = O['Timeline']
export type NodeTimes = O['NodeTimes']
export type Statistics = G['Statistics']
export type Queue = O['Queue']
export type Worker = G['WorkerNow']
export type Orchestrating = G['OrchestratorNow']
export type Health = G['InstallationHealth']
export type DeadLetter = O['DeadLetter']
export type Client = O['Client']
export type Platform = G['Platform']
export type Asset = G['StaffAsset']
export type AssetVersion = G['AssetVersion']
export type AssetRevision = G['AssetRevision']
export type AssetChange = G['AssetChange']
export type WaitingVersion = G['WaitingVersion']
export type ValidationReport = G['ValidationReport']
export type LayerDescribed = G['LayerDescribed']
export type PlatformRequest = G['PlatformRequest']
export type WorkflowPage = G['WorkflowPage']
export type WorkflowSummary = G['WorkflowSummary']
export type InputSpec = G['InputSpec']

/** An event as the API lists it and as the stream brings it. */
export type Event = G['Event']

/** A page of a list; `next` leads to the one after it. */
export interface Page<T> {
  items: T[]
  next: string | null
}

/** What lists for staff and for partners share a type with is for staff here: partners are not let in. */
export function forStaff<T>(page: unknown): Page<T> {
  return page as Page<T>
}
