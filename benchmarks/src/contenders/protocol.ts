import type { Contender, Settings } from './catalogue.ts'

/** What a contender's process is told on its command line, as JSON. */
export interface Casting {
  readonly name: string
  readonly driver: Contender['driver']
  readonly settings: Settings
  readonly url: string
  readonly isTransactional: boolean
}

/** Where the application that publishes has its transactions, and whether the contender can be part of them. */
export type Application = Pick<Casting, 'url' | 'isTransactional'>

/** Every command, what it takes and what it answers. */
export interface Commands {
  setup: { input: null; output: null }
  publishMany: { input: PublishManyInput; output: Spent }
  /** Not to be handled in this run. */
  scheduleMany: { input: PublishManyInput & { readonly delayMs: number }; output: null }
  publishEach: { input: PublishEachInput; output: Spent }
  openConsumer: { input: null; output: null }
  /** Answers at once; how far it came is told by `Progress`. */
  consume: { input: ConsumeInput; output: null }
  stop: { input: null; output: Consumed }
  /** Publishes one at a time, each when the one before has been handled and a pause is over. */
  pingPong: { input: PingPongInput; output: Timed }
  timers: { input: TimersInput; output: Timed }
  /** Publishes at a steady rate and consumes, as long as it is told. */
  load: { input: LoadInput; output: Loaded }
}

export interface PublishManyInput {
  readonly messages: number
  readonly slice: number
}

export interface PublishEachInput {
  readonly messages: number
  readonly committers: number
}

export interface ConsumeInput {
  readonly messages: number
  readonly behaviour: Behaviour
  /** Messages have one of so many, and come in order within each: whether they do is looked at. */
  readonly keys?: number
}

/** What a handler does with a message, once it has counted it. */
export type Behaviour =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'wait'; readonly ms: number }
  /** So often; then it succeeds. */
  | { readonly kind: 'fail'; readonly times: number }
  /** It never ends: its process is going to be killed. */
  | { readonly kind: 'hang' }

export interface PingPongInput {
  readonly messages: number
  readonly pauseMs: number
}

export interface TimersInput {
  readonly messages: number
  /** The first is due so much later, ... */
  readonly leadMs: number
  /** ... the others over this time, evenly. */
  readonly spreadMs: number
}

export interface LoadInput {
  readonly perSecond: number
  /** At the same rate, before what counts. */
  readonly leadSeconds: number
  readonly seconds: number
  /** Figures for each such window. */
  readonly windowSeconds: number
}

/** Of the process that did it. */
export interface Spent {
  /** Over the steady stretch. */
  readonly perSecond: number
  readonly nodeCpuMs: number
}

export interface Consumed {
  readonly tally: string
  /** Messages that came after a later one of their key. */
  readonly disordered: number
  readonly nodeCpuMs: number
  readonly peakHeapMb: number
  readonly peakRssMb: number
}

export interface Timed {
  readonly tally: string
  readonly latenciesMs: readonly number[]
}

export interface Loaded {
  readonly tally: string
  /** Not handled a minute after the last was due: it could not keep up. Their latencies are as long as they have waited by then. */
  readonly late: number
  readonly windows: readonly LoadWindow[]
}

export interface LoadWindow {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
}

export type Order = {
  [Name in keyof Commands]: {
    readonly id: number
    readonly name: Name
    readonly input: Commands[Name]['input']
  }
}[keyof Commands]

export type Report =
  | { readonly kind: 'ready' }
  | { readonly kind: 'answer'; readonly id: number; readonly output: unknown }
  | { readonly kind: 'failure'; readonly id: number; readonly error: string }
  | { readonly kind: 'progress'; readonly handled: number }
