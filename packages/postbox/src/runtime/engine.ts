import type { Teller } from '../core/events.ts'
import { pollDelayMs, reconnectDelayMs } from '../core/pacing.ts'
import { type Board, createBoard } from './board.ts'
import type { Claimer, Found } from './claimer.ts'
import type { Clock } from './clock.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { Failpoint } from './failpoint.ts'
import type { Hand } from './hand.ts'
import type { Settler } from './settler.ts'
import { createSleeper, type Sleeper } from './sleeper.ts'
import { createSweeps, type Sweeps } from './sweeps.ts'
import type { Waker } from './waker.ts'

export interface EngineParts {
  readonly clock: Clock
  readonly teller: Teller
  readonly failpoint?: Failpoint | undefined
  readonly claimer: Claimer
  readonly waker: Waker
  readonly settler: Pick<Settler, 'isStuck' | 'waiting'>
  readonly hand: Pick<Hand, 'held' | 'hold'>
}

export interface Engine {
  /** Serves the queues of one more subscription. */
  add(dispatcher: Dispatcher): void
  /** Claims and dispatches until the signal aborts; then gives back what was not started. Never rejects. */
  run(halt: AbortSignal): Promise<void>
  /** A slot became free, or something was written: look whether that changes anything. */
  roomMade(): void
  /** Somebody published to the queue. */
  notified(queue: string): void
  /** A message of the queue was put back, and will be due in so many milliseconds: nobody else tells us of it. */
  putBack(queue: string, delayMs: number): void
  /** Something may have been committed without a word: look at everything before sleeping. */
  oweSweep(): void
  /** Resolves when nothing is ready and nothing is in hand. */
  untilEmpty(): Promise<void>
  /** Nothing is in hand any more. */
  emptied(): void
  /** Claims that failed in a row. */
  readonly failures: number
}

// A publisher's transaction takes milliseconds, as a rule; one that takes minutes costs two statements every five seconds.
const shortLadder = { min: 20, max: 5_000 }

// What is done but not yet written must not pile up behind a slow flush.
const mostUnwritten = 2_000

/**
 * The loop of an outbox, for all its queues:
 *
 * - A queue has room and may have more: look. One claim for all queues that have room; its rows go to the dispatchers, which start
 *   handlers; what became of them goes to the settler.
 * - None has: rest. Make sure that we will be woken, then sleep until a notification, a freed slot, the next due time, or the fallback.
 *
 * Nothing is claimed while settlements cannot be written. A broken database is told of and survived: claims are tried again, ever later.
 */
export function createEngine(parts: EngineParts): Engine {
  const loop = createLoop(parts)
  const { board, sleeper, empties, halted } = loop
  const owe = (): void => oweSweep(loop)
  const stop = (): void => {
    halted.abort()
    parts.waker.close()
    board.close()
    sleeper.wake()
  }
  return {
    add(dispatcher) {
      board.add(dispatcher)
      owe()
    },
    async run(halt) {
      if (halt.aborted) stop()
      halt.addEventListener('abort', stop, { once: true })
      while (!halted.signal.aborted) await turn(loop)
    },
    roomMade() {
      if (sleeper.wakesAt !== null && worthWaking(loop, sleeper.wakesAt)) sleeper.wake()
    },
    notified(queue) {
      if (!board.notified(queue)) return
      loop.sweeps.owe()
      sleeper.wake()
    },
    putBack(queue, delayMs) {
      const at = parts.clock.now() + delayMs
      board.dueAt(queue, at)
      if (sleeper.wakesAt !== null && at < sleeper.wakesAt) sleeper.wake()
    },
    oweSweep: owe,
    untilEmpty: () =>
      new Promise((resolve) => {
        if (board.size === 0) return resolve()
        empties.push(resolve)
        owe()
      }),
    emptied() {
      if (empties.length > 0) owe()
    },
    get failures() {
      return loop.failures
    },
  }
}

interface Loop {
  readonly parts: EngineParts
  readonly board: Board
  readonly sweeps: Sweeps
  readonly sleeper: Sleeper
  readonly halted: AbortController
  /** Those who wait until there is nothing to do. */
  readonly empties: (() => void)[]
  /** In a row: looks that found nothing, rests that were not safe though we listen, claims that failed. */
  emptyLooks: number
  unsafeRests: number
  failures: number
}

function createLoop(parts: EngineParts): Loop {
  return {
    parts,
    board: createBoard(),
    sweeps: createSweeps(parts.clock, parts.claimer),
    sleeper: createSleeper(parts.clock),
    halted: new AbortController(),
    empties: [],
    emptyLooks: 0,
    unsafeRests: 0,
    failures: 0,
  }
}

function oweSweep({ sweeps, sleeper, board }: Loop): void {
  sweeps.owe()
  // Most of it lies above the cursors: a claim finds that while a sweep is not yet allowed.
  board.mayAllHaveMore()
  sleeper.wake()
}

function mayClaim({ parts: { settler }, board }: Loop): boolean {
  return !settler.isStuck && settler.waiting <= mostUnwritten && board.hasRoom
}

/** A sweep is owed, if not yet allowed: for all queues, or for one that had no room for the last. */
function owesSweep(loop: Loop): boolean {
  return mayClaim(loop) && (loop.sweeps.isOwed || loop.board.missedSweep)
}

/** There is something to do now, or earlier than when it wakes by itself. */
function worthWaking(loop: Loop, wakesAt: number): boolean {
  return shouldLook(loop) || (owesSweep(loop) && loop.sweeps.allowedAt() < wakesAt)
}

function shouldLook(loop: Loop): boolean {
  const { board, sweeps } = loop
  return (mayClaim(loop) && board.wantsLook) || (owesSweep(loop) && sweeps.isAllowed())
}

async function turn(loop: Loop): Promise<void> {
  const { clock, teller } = loop.parts
  try {
    if (!shouldLook(loop)) return await rest(loop)
    await look(loop)
    loop.failures = 0
  } catch (error) {
    const delayMs = Math.round(reconnectDelayMs(++loop.failures, Math.random()))
    teller.tell({ kind: 'claim_failed', error, delayMs })
    loop.board.mayAllHaveMore()
    loop.sweeps.owe()
    // Not to be woken by a freed slot: a server that is down must not be asked once for each handler that ends.
    await clock.sleep(delayMs, loop.halted.signal)
  }
}

async function look(loop: Loop): Promise<void> {
  const { board, sweeps, empties } = loop
  const { claimer, waker, hand, teller } = loop.parts
  const isSweep = sweeps.isDue() || (board.missedSweep && sweeps.isAllowed())
  const hadNothing = hand.held.size === 0
  // Who asks while it is under way gets the next one: what was committed since is not in this.
  const asking = empties.length
  const demands = board.demands(isSweep)
  if (isSweep) sweeps.begin()
  const found = await claimer.claim(demands, isSweep ? 'sweep' : 'claim').catch((error) => {
    // A claim from the cursors comes next: a sweep that takes too long must not keep fresh messages from being delivered.
    if (isSweep) sweeps.end(false)
    throw error
  })
  const claimed = found.flatMap(({ held }) => held)
  tellClaimed(teller, found)
  if (isSweep) sweeps.end(found.every(({ isFull }) => !isFull))
  hand.hold(claimed)
  waker.getUp(board.busy(found))
  board.take(found)
  loop.emptyLooks = claimed.length === 0 ? loop.emptyLooks + 1 : 0
  const sawAll = isSweep && demands.length === board.size
  if (sawAll && hadNothing && claimed.length === 0) for (const tell of empties.splice(0, asking)) tell()
}

/** Empty claims, too: whoever counts messages wants to know how often there were none. */
function tellClaimed(teller: Teller, found: readonly Found[]): void {
  if (!teller.isHeard) return
  for (const { queue, held } of found) teller.tell({ kind: 'claimed', queue, count: held.length })
}

async function rest(loop: Loop): Promise<void> {
  const { board, sweeps, sleeper, halted } = loop
  const { clock, waker, failpoint } = loop.parts
  const exhausted = board.exhausted()
  const isSafe = exhausted.length === 0 || (await waker.lieDown(exhausted))
  if (failpoint) await failpoint.reach('before_sleep')
  if (shouldLook(loop) || halted.signal.aborted) return
  const pollAt = clock.now() + pollMsOf(loop, isSafe)
  const sweepAt = owesSweep(loop) ? sweeps.allowedAt() : Number.POSITIVE_INFINITY
  const wakeAt = Math.min(pollAt, board.nextDueAt(), sweepAt)
  if (await sleeper.sleepUntil(wakeAt)) return
  board.timeHasCome(wakeAt)
  if (wakeAt < pollAt) return
  board.mayAllHaveMore()
  sweeps.owe()
}

/** How long to sleep when nobody wakes us: until the fallback; while publishers that may be quiet are waited for, shortly; deaf, by the ladder. */
function pollMsOf(loop: Loop, isSafe: boolean): number {
  const bounds = loop.board.pollMs()
  loop.unsafeRests = isSafe ? 0 : loop.unsafeRests + 1
  if (isSafe) return bounds.max
  if (!loop.parts.waker.isListening) return pollDelayMs(loop.emptyLooks + 1, bounds, Math.random())
  return pollDelayMs(loop.unsafeRests, shortLadder, Math.random())
}
