// One order of one scenario, step by step, from the same fresh state.
import { book, openAccount } from './account.ts'
import { type Bench, closer } from './bench.ts'
import { type Account, type Booked, broken } from './books.ts'
import type { Order } from './orders.ts'
import { reconcile } from './reconcile.ts'
import type { DrivenSession } from './session.ts'
import { calm, settle } from './settle.ts'
import { anHourPasses, claim } from './steps.ts'
import { closingInOrder } from './steps-order.ts'
import type { Finished, Scenario, Snapshot, Violation } from './terms.ts'

/** A step that was begun, those that came to their end by it, and what everybody could see then. */
export interface Line {
  readonly letter: string
  readonly label: string
  readonly finished: readonly Finished[]
  readonly snapshot: Snapshot
}

export interface Run {
  readonly order: Order
  /** It cannot be gone through: at this place of it, it is the turn of somebody who waits. */
  readonly impossibleAt: number | null
  readonly violation: Violation | null
  readonly lines: readonly Line[]
}

/**
 * Steps are begun one by one. A session whose step waits for a lock (Postgres is asked) goes on by itself when the lock is free; until then
 * it cannot have its turn, and an order that gives it one is impossible: what would come of it is what comes of the order in which its turn comes later.
 * Sessions that wait for each other are waited for, until Postgres ends it. `limit`: only so many steps.
 */
export async function runOrder(
  bench: Bench,
  scenario: Scenario,
  { order, limit = order.length }: { readonly order: Order; readonly limit?: number },
): Promise<Run> {
  await bench.reset(scenario)
  const lines: Line[] = []
  let snapshot = await openingOf(bench, scenario)
  let account = openAccount(snapshot)
  const end = async (rest: Pick<Run, 'impossibleAt' | 'violation'>): Promise<Run> => {
    await calm(bench)
    return { order, lines, ...rest }
  }
  const stage = stageOf(bench, scenario, order)
  for (let at = 0; at < limit; at++) {
    const letter = order[at]!
    if (stage.waits(letter)) return end({ impossibleAt: at, violation: null })
    const { label, finished } = await stage.take(at)
    // What was done in a transaction that is open, nobody else can see.
    if (!stage.isHidden(finished)) snapshot = await bench.look()
    lines.push({ letter, label, finished, snapshot })
    const booked = stage.waitsWronglyNow() ?? bookAll(account, { finished, snapshot, scenario })
    if ('violation' in booked) return end({ impossibleAt: null, violation: booked.violation })
    account = booked.account
  }
  if (limit < order.length) return end({ impossibleAt: null, violation: null })
  stage.assertOver()
  const booked = effectsAtTheEnd(account, scenario) ?? (await foundLater(bench, account, scenario))
  return end({ impossibleAt: null, violation: 'violation' in booked ? booked.violation : null })
}

/** Whatever happened: an hour later, what is left and not dead is found by a claim. */
async function foundLater(bench: Bench, account: Account, scenario: Scenario): Promise<Booked> {
  const session = bench.sessions.get(closer)!
  let booked: Booked = { account }
  session.hear((one) => {
    if ('account' in booked) booked = book(booked.account, one)
  })
  for (const step of [anHourPasses, ...(scenario.isOrdered ? closingInOrder : [claim()])]) {
    session.start(step, true)
    await session.over
    // Where what joins its key stands, only the table tells.
    if (scenario.isOrdered && 'account' in booked)
      booked = reconcile(booked.account, await bench.look(), scenario)
  }
  return booked
}

function effectsAtTheEnd({ effects }: Account, { isTransactional, given }: Scenario): Booked | null {
  if (!isTransactional || effects.length === given.length) return null
  return broken('the effect of a message is there once', `in the end there were ${effects.length}`)
}

// Every order of a scenario begins with the same.
const openings = new WeakMap<Scenario, Snapshot>()

async function openingOf(bench: Bench, scenario: Scenario): Promise<Snapshot> {
  const opening = openings.get(scenario) ?? (await bench.look())
  openings.set(scenario, opening)
  return opening
}

/** Several that end by one step may be heard in any order: one of them has to make sense. */
function bookAll(
  account: Account,
  { finished, snapshot, scenario }: Pick<Line, 'finished' | 'snapshot'> & { readonly scenario: Scenario },
): Booked {
  const all = permutations(finished).map((sequence) => {
    const start: Booked = { account }
    const booked = sequence.reduce<Booked>(
      (now, one) => ('violation' in now ? now : book(now.account, one)),
      start,
    )
    return 'violation' in booked ? booked : reconcile(booked.account, snapshot, scenario)
  })
  return all.find((one) => 'account' in one) ?? all[0]!
}

function permutations<T>(items: readonly T[]): readonly (readonly T[])[] {
  if (items.length < 2) return [items]
  return items.flatMap((item, nth) => permutations(items.toSpliced(nth, 1)).map((rest) => [item, ...rest]))
}

function stageOf(bench: Bench, scenario: Scenario, order: Order) {
  const actors = Object.keys(scenario.programs).map((letter) => bench.sessions.get(letter)!)
  const sessionOf = (letter: string): DrivenSession => bench.sessions.get(letter)!
  const isBusy = (session: DrivenSession): boolean => session.running !== null || session.isInTransaction
  return {
    waits: (letter: string): boolean => sessionOf(letter).running !== null,
    waitsWronglyNow(): Booked | null {
      const step = actors.find(({ running }) => running?.neverWaits)?.running
      return step ? broken('it waits for nobody', `${step.label} has to wait for a lock`) : null
    },
    isHidden: (finished: readonly Finished[]): boolean =>
      finished.every(({ letter }) => sessionOf(letter).isInTransaction),
    async take(at: number): Promise<Pick<Line, 'label' | 'finished'>> {
      const letter = order[at]!
      const turn = [...order.slice(0, at)].filter((one) => one === letter).length
      const step = scenario.programs[letter]![turn]!
      const session = sessionOf(letter)
      const finished: Finished[] = []
      const wasAlone = actors.every((other) => other === session || !isBusy(other))
      for (const other of actors) other.hear((one) => finished.push(one))
      session.start(step, wasAlone)
      await settle(bench, actors)
      // Others end by it, not before it.
      const own = finished.filter((one) => one.letter === letter)
      return { label: step.label, finished: [...own, ...finished.filter((one) => !own.includes(one))] }
    },
    assertOver(): void {
      if (actors.some(isBusy)) throw new Error(`${scenario.key}: a program has to end its transactions`)
    },
  }
}
