import type { Teller } from '../core/events.ts'
import { pollDelayMs, reconnectDelayMs } from '../core/pacing.ts'
import { pausesChanged } from '../sql/pause-queue.ts'
import { type Board, createBoard } from './board.ts'
import type { Found } from './claimer.ts'
import type { Claimers } from './claimers.ts'
import type { Clock } from './clock.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { Failpoint } from './failpoint.ts'
import type { Hand } from './hand.ts'
import { createPauses, type Pauses, type PausesParts } from './pauses.ts'
import type { Settler } from './settler.ts'
import { createSleeper, type Sleeper } from './sleeper.ts'
import { createSweeps, type Sweeps } from './sweeps.ts'
import type { Waker } from './waker.ts'

export interface EngineParts {
  readonly clock: Clock
  readonly teller: Teller
  readonly failpoint?: Failpoint | undefined
  readonly claimer: Claimers
  readonly waker: Waker
  readonly settler: Pick<Settler, 'isStuck' | 'waiting'>
  readonly hand: Pick<Hand, 'held' | 'hold'>
  readonly names: PausesParts['names']
  /** How it stands with queues, asked of the database. */
  readonly askPauses: PausesParts['ask']
}

export interface Engine {
  /** Serves the queues of one more subscription. */
  add(dispatcher: Dispatcher): void
  /** Claims and dispatches until the signal aborts; then gives back what was not started. Never rejects. */
  run(halt: AbortSignal): Promise<void>
  /** A slot became free, or something was written: look whether that changes anything. */
  roomMade(): void
  /** Somebody published to the queue; without a name, somebody has paused or resumed one. */
  notified(queue: string): void
  /** A message of the queue was put back, and will be due in so many milliseconds: nobody else tells us of it. */
  putBack(queue: string, delayMs: number): void
  /** The last message of a key that was held here is gone: what comes next of it is ours to take. */
  keySettled(queue: string, key: string, seq: string): void
  /** Something may have been committed without a word: look at everything before sleeping. */
  oweSweep(): void
  /** Resolves when nothing is ready and nothing is in hand. */
  untilEmpty(): Promise<void>
  /** Nothing is in hand any more. */
  emptied(): void
  /** Claims that failed in a row. */
  readonly failures: number
  /** Queues with keys that go on, which nobody has been told of: they were settled when nothing was claimed here any more. */
  readonly left: ReadonlySet<string>
  /** Queues that are in the order of their keys, and that this process has without: nothing of them is claimed. */
  readonly mismatched: readonly string[]
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
  // Whoever waits until nothing is ready is told by a round that began when he asked, and nothing was in hand, or later.
  const oweRound = (): void => {
    beginRound(loop)
    owe()
  }
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
      tellBelated(parts)
    },
    roomMade() {
      if (sleeper.wakesAt !== null && worthWaking(loop, sleeper.wakesAt)) sleeper.wake()
    },
    notified(queue) {
      if (queue === pausesChanged) loop.pauses.changed()
      else if (!board.notified(queue)) return
      else if (empties.length === 0) {
        loop.sweeps.owe()
        if (sleeper.wakesAt !== null) loop.called = queue
      }
      // Another process may have handed over keys that a round has passed: who waits until nothing is ready is told by the next.
      else oweRound()
      sleeper.wake()
    },
    putBack(queue, delayMs) {
      const at = parts.clock.now() + delayMs
      board.dueAt(queue, at)
      if (sleeper.wakesAt !== null && at < sleeper.wakesAt) sleeper.wake()
    },
    keySettled(queue, key, seq) {
      if (halted.signal.aborted) loop.left.add(queue)
      parts.claimer.keySettled(queue, key, seq)
      board.notified(queue)
      if (sleeper.wakesAt !== null && worthWaking(loop, sleeper.wakesAt)) sleeper.wake()
    },
    oweSweep: owe,
    untilEmpty: () =>
      new Promise((resolve) => {
        if (board.size === 0) return resolve()
        empties.push(resolve)
        oweRound()
      }),
    emptied() {
      if (empties.length > 0) oweRound()
    },
    left: loop.left,
    get mismatched() {
      return loop.pauses.mismatched()
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
  readonly pauses: Pauses
  readonly halted: AbortController
  /** Those who wait until there is nothing to do. */
  readonly empties: (() => void)[]
  readonly left: Set<string>
  /** In a row: looks that found nothing, rests that were not safe though we listen, claims that failed. */
  emptyLooks: number
  unsafeRests: number
  failures: number
  /** When to look again though nobody woke us: counted from the last look, however often the rest is interrupted. null: not known yet. */
  pollAt: number | null
  /** The queue that somebody published to while we slept. */
  called: string | null
}

function createLoop(parts: EngineParts): Loop {
  const { clock, teller, waker, names } = parts
  const board = createBoard()
  const sleeper = createSleeper(clock)
  const pauses = createPauses({
    clock,
    teller,
    names,
    board,
    ask: parts.askPauses,
    // Publishers may be quiet about it: nobody looks.
    paused: (queue) => waker.getUp([queue]),
    resumed: () => oweSweep(loop),
  })
  const loop: Loop = {
    parts,
    board,
    sweeps: createSweeps(clock, parts.claimer),
    sleeper,
    pauses,
    halted: new AbortController(),
    empties: [],
    left: new Set(),
    emptyLooks: 0,
    unsafeRests: 0,
    failures: 0,
    pollAt: null,
    called: null,
  }
  return loop
}

function oweSweep({ sweeps, sleeper, board }: Loop): void {
  sweeps.owe()
  // Most of it lies above the cursors: a claim finds that while a sweep is not yet allowed.
  board.mayAllHaveMore()
  sleeper.wake()
}

function beginRound({ sweeps, parts: { claimer } }: Loop): void {
  claimer.beginRound()
  sweeps.beginRound()
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

function isPauseLookDue({ pauses, parts: { clock } }: Loop): boolean {
  return pauses.nextLookAt() <= clock.now()
}

async function turn(loop: Loop): Promise<void> {
  const { clock, teller } = loop.parts
  try {
    if (isPauseLookDue(loop)) return await loop.pauses.look()
    if (!shouldLook(loop)) return await rest(loop)
    const hasFound = await takeFresh(loop)
    // What it took may have left no room, and a stop may have come.
    if (shouldLook(loop)) await look(loop)
    // Together they are one look, which has found something.
    if (hasFound) loop.emptyLooks = 0
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

/** No claim comes any more that would. */
function tellBelated({ claimer, teller }: EngineParts): void {
  try {
    claimer.belated.tell()
  } catch (error) {
    teller.tell({ kind: 'claim_failed', error, delayMs: 0 })
  }
}

/**
 * Woken by a publisher, who may wait for what he published to be handled: a statement that takes it, and asks for nothing else, goes before the claim that learns all
 * the rest. Returns whether there was something.
 */
async function takeFresh(loop: Loop): Promise<boolean> {
  const { board, called } = loop
  const { claimer, waker, hand, teller } = loop.parts
  loop.called = null
  const demand = called === null ? null : board.demandOf(called)
  if (demand === null) return false
  const fresh = await claimer.claimFresh(demand)
  if (teller.isHeard) teller.tell({ kind: 'claimed', queue: fresh.queue, count: fresh.held.length })
  if (fresh.held.length === 0) return false
  hand.hold(fresh.held)
  if (fresh.isFull) waker.getUp([fresh.queue])
  board.takeFresh(fresh)
  return true
}

async function look(loop: Loop): Promise<void> {
  const { board, sweeps, empties } = loop
  const { claimer, waker, hand, teller, clock } = loop.parts
  loop.pollAt = null
  const isSweep = sweeps.isDue() || (board.missedSweep && sweeps.isAllowed())
  const hadNothing = hand.held.size === 0
  // Who asks while it is under way gets the next one: what was committed since is not in this.
  const asking = empties.length
  const demands = board.demands(isSweep)
  if (isSweep) sweeps.begin()
  const sentAt = clock.now()
  const found = await claimer.claim(demands, isSweep ? 'sweep' : 'claim').catch((error) => {
    // A claim from the cursors comes next: a sweep that takes too long must not keep fresh messages from being delivered.
    if (isSweep) sweeps.end(null)
    throw error
  })
  const claimed = found.flatMap(({ held }) => held)
  tellClaimed(teller, found)
  const isComplete = isSweep && sweeps.end(found)
  const isOfAll = demands.length === board.size
  // Rounds that ended before the longest are on their way again: what is owed next begins at the first key, too.
  if (isComplete && isOfAll && found.some(({ round }) => round?.isOver === false)) beginRound(loop)
  loop.pauses.learn(found, sentAt)
  hand.hold(claimed)
  waker.getUp(board.busy(found))
  board.take(found)
  // Queues of which nothing was heard would sleep until the poll: the next claim comes at once, and throws what happened.
  if (claimer.belated.isUntold) board.mayAllHaveMore()
  loop.emptyLooks = claimed.length === 0 ? loop.emptyLooks + 1 : 0
  const sawAll = isSweep && isOfAll && found.every(({ round }) => round?.isEmpty ?? true)
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
  loop.called = null
  const exhausted = board.exhausted()
  const isSafe = exhausted.length === 0 || (await waker.lieDown(exhausted))
  if (failpoint) await failpoint.reach('before_sleep')
  if (shouldLook(loop) || isPauseLookDue(loop) || halted.signal.aborted) return
  loop.pollAt ??= clock.now() + pollMsOf(loop, isSafe)
  const { pollAt } = loop
  const sweepAt = owesSweep(loop) ? sweeps.allowedAt() : Number.POSITIVE_INFINITY
  const wakeAt = Math.min(pollAt, board.nextDueAt(), sweepAt, loop.pauses.nextLookAt())
  if (await sleeper.sleepUntil(wakeAt)) return
  board.timeHasCome(wakeAt)
  if (wakeAt < pollAt) return
  board.mayAllHaveMore()
  sweeps.owe()
  loop.pollAt = null
}

/** How long to sleep when nobody wakes us: until the fallback; while publishers that may be quiet are waited for, shortly; deaf, by the ladder. */
function pollMsOf(loop: Loop, isSafe: boolean): number {
  const bounds = loop.board.pollMs()
  loop.unsafeRests = isSafe ? 0 : loop.unsafeRests + 1
  if (isSafe) return bounds.max
  if (!loop.parts.waker.isListening) return pollDelayMs(loop.emptyLooks + 1, bounds, Math.random())
  return pollDelayMs(loop.unsafeRests, shortLadder, Math.random())
}
