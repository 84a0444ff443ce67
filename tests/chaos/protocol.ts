// What a test and its child processes say to each other, over the channel between them.
import type { SubscribeOptions } from 'postbox'
import type { FailpointName } from '../../packages/postbox/src/runtime/failpoint.ts'

// As the keys of a record, so that a place that is added to the library has to be added here: it does not compile without.
const places: Record<FailpointName, true> = {
  before_listen: true,
  after_listen: true,
  before_sleep: true,
  before_claim: true,
  claim_sent: true,
  after_claim: true,
  before_handler: true,
  transaction_fenced: true,
  transaction_worked: true,
  before_commit: true,
  commit_sent: true,
  after_handler: true,
  before_flush: true,
  flush_sent: true,
  after_flush: true,
  before_renewal: true,
  renewal_sent: true,
  after_renewal: true,
}

const all = Object.keys(places) as readonly FailpointName[]

/** Those that only a handler's own transaction passes. */
export const transactionPoints: readonly FailpointName[] = [
  'transaction_fenced',
  'transaction_worked',
  'before_commit',
  'commit_sent',
]

/** All other places where a process can be killed or held. */
export const failpoints: readonly FailpointName[] = all.filter((name) => !transactionPoints.includes(name))

/** What a worker is told to be, by its environment. */
export interface WorkerOrder {
  readonly url: string
  readonly schema: string
  /** The application name of the connections that it works and listens on. */
  readonly name: string
  readonly queues: readonly string[]
  readonly options: SubscribeOptions
  /** Its handlers wait until they are told to finish. */
  readonly waits: boolean
  /** Its handlers record their delivery in the transaction that ends their message. */
  readonly transacts: boolean
  /** Its handlers record when they begin and when they end, and one of a message with `killingBody` kills its process. */
  readonly isMortal?: boolean
  /** They take so many messages at once. Absent: one. */
  readonly batchSize?: number
  readonly trap: Trap | null
  /** No sleep is longer: what breaks again and again is otherwise tried ever later. Absent: as long as they are. */
  readonly longestSleepMs?: number
}

/** What happens where a failpoint is reached. */
export interface Trap {
  readonly point: FailpointName
  /** At the n-th time. */
  readonly nth: number
  /** kill: SIGKILL, as if the machine had gone. hold: says so, and waits until it is told to go on. */
  readonly action: 'kill' | 'hold'
  /** Counts only while a handler runs whose lease is past its half, so that there is something to renew. */
  readonly whileRenewing: boolean
}

export type Command =
  | { readonly kind: 'set a trap'; readonly trap: Trap }
  | { readonly kind: 'go on' }
  /** Every handler that waits now; its message does not wait again, should it be delivered again. */
  | { readonly kind: 'finish' }
  /** Publishers: random transactions made from the seed. */
  | { readonly kind: 'publish'; readonly seed: number }

export type Report =
  | { readonly kind: 'ready' }
  | { readonly kind: 'held'; readonly point: FailpointName }
  /** A handler has recorded its delivery. */
  | { readonly kind: 'delivered'; readonly id: string }
  | { readonly kind: 'log'; readonly level: string; readonly message: string; readonly id: unknown }
  /** Of Node: a leak of listeners, say. */
  | { readonly kind: 'warning'; readonly text: string }
  | Published

export interface Published {
  readonly kind: 'published'
  readonly seed: number
  readonly committed: readonly string[]
  readonly rolledBack: readonly string[]
  /** How often a transaction that committed published to a queue: each could have been announced. */
  readonly announceable: number
}

/** A message with this body is not finished before the worker is told so. */
export const waitingBody = 'wait'

/** A message with this body kills the process of a worker that is mortal. */
export const killingBody = 'kill'

export const wakeQueues = ['orders', 'emails', 'invoices'] as const
