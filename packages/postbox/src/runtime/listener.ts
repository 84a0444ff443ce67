import type { Database, Listening } from '../adapters/executor.ts'
import type { Teller } from '../core/events.ts'
import { reconnectDelayMs } from '../core/pacing.ts'
import type { Names } from '../sql/names.ts'
import { sendWord } from '../sql/sleep.ts'
import type { Statement } from '../sql/statement.ts'
import type { Clock } from './clock.ts'
import { before, statementTimeout } from './deadline.ts'
import type { Failpoint } from './failpoint.ts'
import type { Lane } from './lane.ts'
import { createTurns } from './turns.ts'

/** The connection that listens: made anew when it breaks, and asked from time to time whether it still hears. */
export interface Listener {
  /** Another number with each connection; null: nobody listens now. */
  readonly ear: number | null
  /** Runs a statement on the connection that listens: locks that it takes last as long as the listening. */
  run<Row>(statement: Statement<Row>): Promise<readonly Row[]>
  /** Resolves when the connection has been given back; never rejects. */
  readonly ended: Promise<void>
}

export interface ListenerParts {
  readonly listen: NonNullable<Database['listen']>
  readonly lane: Pick<Lane, 'run'>
  readonly names: Names
  readonly clock: Clock
  readonly teller: Teller
  readonly statementTimeoutMs: number
  readonly failpoint?: Failpoint | undefined
  /** A channel that nobody else listens to. */
  readonly ownChannel: string
  /** Somebody published to the queue. */
  notified(queue: string): void
  /** It listens now, or no longer does. */
  changed(): void
}

export const heartbeatMs = 30_000
const answerMs = 5_000
const graceMs = 1_000
// A connection that lived this long was a good one: the next failure is the first again, not the last in a row.
const goodAfterMs = 60_000

/** A connection that listens, and the signal that it does so no longer. */
interface Ear {
  readonly number: number
  readonly listening: Listening
  readonly lost: AbortController
}

/**
 * connect → listen → send ourselves a word and hear it → listening → every half minute the same again → lost → wait → connect.
 * The word is sent on the other connection: through a pooler that gives each transaction another connection, LISTEN succeeds and
 * nothing is ever heard. Who does not hear polls, and says so once.
 */
export function keepListening(parts: ListenerParts, halt: AbortSignal): Listener {
  const { clock, teller } = parts
  const turns = createTurns()
  let ear: Ear | null = null
  let ears = 0
  const become = (next: Ear | null): void => {
    const hasChanged = ear !== next
    ear = next
    if (hasChanged) parts.changed()
  }
  const listenUntilLost = async (heard: () => void): Promise<void> => {
    if (parts.failpoint) await parts.failpoint.reach('before_listen')
    const lost = new AbortController()
    const word = createWord()
    const opening = parts.listen([parts.names.channel, parts.ownChannel], {
      notified: (channel, queue) => (channel === parts.ownChannel ? word.say() : parts.notified(queue)),
      lost: (error) => lost.abort(error),
    })
    const listening = await unlessHalted(opening, halt, parts)
    if (listening === null) return
    const own: Ear = { number: ++ears, listening, lost }
    const until = AbortSignal.any([halt, lost.signal])
    try {
      if (parts.failpoint) await parts.failpoint.reach('after_listen')
      while (!until.aborted) {
        await assertHears(parts, word, until)
        if (until.aborted) break
        become(own)
        heard()
        await clock.sleep(heartbeatMs, until)
      }
      if (!halt.aborted) throw lost.signal.reason
      become(null)
      await turns.ended()
      await before(listening.end(), parts.statementTimeoutMs, () =>
        statementTimeout('giving the listening connection back', parts.statementTimeoutMs),
      )
    } catch (error) {
      become(null)
      listening.destroy()
      throw error
    }
  }
  const loop = async (): Promise<void> => {
    let failures = 0
    let isDeaf = false
    while (!halt.aborted) {
      let heardAt = Number.POSITIVE_INFINITY
      try {
        await listenUntilLost(() => {
          if (isDeaf) teller.tell({ kind: 'listener_restored' })
          isDeaf = false
          heardAt = Math.min(heardAt, clock.now())
        })
      } catch (error) {
        if (halt.aborted) return
        failures = clock.now() - heardAt > goodAfterMs ? 1 : failures + 1
        const delayMs = Math.round(reconnectDelayMs(failures, Math.random()))
        if (!isDeaf) teller.tell({ kind: 'listener_lost', error, delayMs })
        isDeaf = true
        await clock.sleep(delayMs, halt)
      }
    }
  }
  return {
    get ear() {
      return ear?.number ?? null
    },
    run(statement) {
      const own = ear
      return turns.take(() => runOn(own, statement, parts.statementTimeoutMs))
    },
    ended: loop(),
  }
}

/** A statement that fails, or takes too long, ends the listening: locks may be held or not, and only a new connection is sure of them. */
async function runOn<Row>(
  ear: Ear | null,
  statement: Statement<Row>,
  timeoutMs: number,
): Promise<readonly Row[]> {
  if (ear === null) throw new Error('nobody listens')
  try {
    return await before(ear.listening.run(statement), timeoutMs, () =>
      statementTimeout(statement.name, timeoutMs),
    )
  } catch (error) {
    ear.lost.abort(error)
    throw error
  }
}

/**
 * The connection, or null when there is a stop first. A stop waits a moment for one that is being made: postgres.js cannot end one that is
 * still connecting, and the process would not end either. Not for ever: an exhausted pool may never give one.
 */
async function unlessHalted(
  opening: Promise<Listening>,
  halt: AbortSignal,
  { clock, statementTimeoutMs: timeoutMs }: Pick<ListenerParts, 'clock' | 'statementTimeoutMs'>,
): Promise<Listening | null> {
  let stopWaiting = (): void => {}
  const halted = new Promise<null>((resolve) => {
    stopWaiting = () => resolve(null)
    if (halt.aborted) stopWaiting()
    halt.addEventListener('abort', stopWaiting, { once: true })
  })
  try {
    const opened = await before(Promise.race([opening, halted]), timeoutMs, () =>
      statementTimeout('listening', timeoutMs),
    )
    if (opened === null) await endSoon(opening, clock)
    return opened
  } catch (error) {
    opening.then((late) => late.destroy()).catch(() => {})
    throw error
  } finally {
    halt.removeEventListener('abort', stopWaiting)
  }
}

async function endSoon(opening: Promise<Listening>, clock: Clock): Promise<void> {
  const timer = new AbortController()
  const ended = opening.then((late) => late.end()).catch(() => {})
  await Promise.race([ended, clock.sleep(graceMs, timer.signal)])
  timer.abort()
}

/** Fails when a word that we send to ourselves is not heard. */
async function assertHears(
  { lane, clock, ownChannel }: Pick<ListenerParts, 'lane' | 'clock' | 'ownChannel'>,
  word: Word,
  until: AbortSignal,
): Promise<void> {
  const heard = word.next().then(() => true)
  const sent = await lane.run(sendWord(ownChannel))
  // The server's notification queue is half full: there is nothing to be learnt. Or it was over meanwhile: a signal that has aborted tells nobody any more.
  if (sent.length === 0 || until.aborted) return
  const timer = new AbortController()
  const stopWaiting = (): void => timer.abort()
  until.addEventListener('abort', stopWaiting, { once: true })
  const isHeard = await Promise.race([heard, clock.sleep(answerMs, timer.signal).then(() => false)])
  until.removeEventListener('abort', stopWaiting)
  timer.abort()
  if (isHeard || until.aborted) return
  throw new Error(
    'a notification that was sent to ourselves did not arrive: LISTEN needs a direct connection, not a pooler in transaction mode',
  )
}

interface Word {
  say(): void
  /** Resolves when it is said the next time. */
  next(): Promise<void>
}

function createWord(): Word {
  let say = (): void => {}
  return {
    say: () => say(),
    next: () =>
      new Promise((resolve) => {
        say = resolve
      }),
  }
}
