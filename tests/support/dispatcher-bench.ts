// A dispatcher whose handlers run until they are told how to end.
import type { Context } from '../../packages/postbox/src/core/handler.ts'
import type { Message } from '../../packages/postbox/src/core/message.ts'
import type { Outcome } from '../../packages/postbox/src/core/outcome.ts'
import type { SubscribeOptions } from '../../packages/postbox/src/core/subscribe-options.ts'
import { createAlarms } from '../../packages/postbox/src/runtime/alarms.ts'
import { type Breath, createBreath } from '../../packages/postbox/src/runtime/breath.ts'
import { createDispatcher } from '../../packages/postbox/src/runtime/dispatcher.ts'
import type { Failpoint } from '../../packages/postbox/src/runtime/failpoint.ts'
import { createGate, type Gate } from '../../packages/postbox/src/runtime/gate.ts'
import type { Held } from '../../packages/postbox/src/runtime/held.ts'
import { createSignals } from '../../packages/postbox/src/runtime/signals.ts'
import type { Subscription } from '../../packages/postbox/src/runtime/subscription.ts'
import { batch, each, leaseOf, subscriptionOf, toolsOf } from './delivery-bench.ts'
import type { FakeClock } from './fake-clock.ts'

/** Resolves when everything that could run without waiting has run. */
export const idle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

export function leased(seq: number, body: Uint8Array = new Uint8Array(0)): Held {
  return leaseOf({ seq: `${seq}`, body, headers: { 'content-type': 'application/octet-stream' } })
}

export const leasedUpTo = (count: number): Held[] =>
  Array.from({ length: count }, (_, index) => leased(index + 1))

/** A handler that runs until it is told what becomes of it. */
export interface Run {
  /** Of its message; of all of them, when it is a batch: `1 2 3`. */
  readonly seq: string
  readonly context: Pick<Context, 'signal'>
  end(): Promise<void>
  fail(error: Error): Promise<void>
}

export const seqsOf = (runs: readonly Run[]): string[] => runs.map(({ seq }) => seq)

interface Given {
  readonly failpoint?: Failpoint
  readonly isHeard?: boolean
  readonly queues?: readonly string[]
  /** Shared with other dispatchers; absent: one of its own. */
  readonly gate?: Gate
  /** Absent: one of its own. */
  readonly breath?: Pick<Breath, 'mayStart'>
  /** Counts the deliveries of suspects; absent: at once, and all of them. */
  readonly count?: (suspect: Held) => Promise<boolean>
  readonly clock?: FakeClock
  /** Absent: one message at a time. */
  readonly batches?: { readonly size: number; readonly maxWaitMs: number }
}

function heldRuns(batches: Given['batches']): { readonly runs: Run[]; readonly run: Subscription['run'] } {
  const runs: Run[] = []
  const handle = (messages: readonly Message[], context: Pick<Context, 'signal'>): Promise<void> =>
    new Promise((resolve, reject) => {
      const end = (): Promise<void> => {
        resolve()
        return idle()
      }
      const fail = (error: Error): Promise<void> => {
        reject(error)
        return idle()
      }
      runs.push({ seq: messages.map(({ seq }) => seq).join(' '), context, end, fail })
    })
  if (batches !== undefined) return { runs, run: batch(handle, batches.size, batches.maxWaitMs) }
  return { runs, run: each((message, context) => handle([message], context)) }
}

export function dispatcherOf(options: SubscribeOptions, given: Given = {}) {
  const { tools: own, told, ...bench } = toolsOf({ isHeard: given.isHeard ?? true })
  const { clock = bench.clock } = given
  const tools = { ...own, clock, alarms: createAlarms(clock) }
  const abandon = new AbortController()
  const halt = new AbortController()
  const { runs, run } = heldRuns(given.batches)
  const finished: [string, Outcome][] = []
  const durations: (number | null)[] = []
  const unstarted: string[] = []
  const counts = { roomMade: 0 }
  const subscription = { ...subscriptionOf(run, options), queues: given.queues ?? ['orders'] }
  const dispatcher = createDispatcher(subscription, {
    tools,
    failpoint: given.failpoint,
    signals: createSignals(abandon.signal),
    gate: given.gate ?? createGate(clock, halt.signal),
    breath: given.breath ?? createBreath(clock),
    count: given.count ?? (async () => true),
    desk: {
      finished(held, outcome, durationMs) {
        finished.push([held.lease.seq, outcome])
        durations.push(durationMs)
        held.over?.('gone')
      },
      unstarted(held) {
        unstarted.push(held.lease.seq)
        held.over?.('kept')
      },
    },
    keySettled: () => {},
    roomMade: () => {
      counts.roomMade++
    },
  })
  const take = (held: readonly Held[]): Promise<void> => {
    dispatcher.take(held)
    return idle()
  }
  /** Handlers that each take so long, one after the other. */
  const runEach = async (count: number, ms: number, body?: Uint8Array): Promise<void> => {
    for (let n = 0; n < count; n++) {
      const one = leased(n, body)
      one.deadline += clock.now()
      await take([one])
      clock.advance(ms)
      await runs.at(-1)?.end()
    }
  }
  return {
    dispatcher,
    clock,
    abandon,
    halt,
    runs,
    finished,
    durations,
    unstarted,
    counts,
    told,
    take,
    runEach,
  }
}
