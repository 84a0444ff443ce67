import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { advance, type Cursor, fromStart, type Look, raiseFloor, type SweepLook } from './cursor.ts'
import { type FirstSeen, type Horizon, horizonOf, type Snapshot } from './horizon.ts'

/** One step of somebody; what cannot be done at that point does nothing. */
type Step =
  /** A transaction gets its xid with its first step, and a seq for each row. */
  | { readonly kind: 'write'; readonly slot: number; readonly rows: number }
  | { readonly kind: 'commit' | 'rollback'; readonly slot: number }
  /** The claimer's one statement takes three of these: its snapshot; its xid and its rows; the sequence's value and its commit. */
  | { readonly kind: 'claim' | 'sweep'; readonly room: number }
  /** Another process takes the lowest rows there are. */
  | { readonly kind: 'peer'; readonly rows: number }
  /** The n-th row that somebody holds. */
  | { readonly kind: 'delete' | 'release'; readonly nth: number }
  | { readonly kind: 'wait'; readonly ms: number }

interface Statement {
  readonly isSweep: boolean
  readonly room: number
  readonly sentAt: number
  readonly snapshot: Snapshot
  /** The rows that its snapshot shows, from where it begins, and whether each was free. */
  readonly shown: readonly (readonly [seq: bigint, isFree: boolean])[]
  own: bigint
  taken: readonly bigint[]
}

/** What a statement found out, and what wrong rules decide by. */
interface Facts {
  readonly snapshot: Snapshot
  readonly horizon: Horizon
  readonly top: bigint
  readonly lowestFree: bigint | null
}

/** A wrong rule: what it takes for what. */
interface Twist {
  readonly look?: ((facts: Facts) => Partial<Look>) | undefined
  readonly sweepLook?: ((facts: Facts) => Partial<SweepLook>) | undefined
}

const patienceMs = 250
// So that the script by which the rule with xmax was found to be wrong has the numbers it had.
const firstXid = 636_299n

/** A small Postgres with one claimer. */
function createWorld(twist: Twist) {
  return {
    twist,
    now: 0,
    nextXid: firstXid,
    latestCompleted: firstXid - 1n,
    running: new Set<bigint>(),
    slots: new Map<number, { xid: bigint; beganAt: number; seqs: bigint[] }>(),
    /** The sequence's value. */
    top: 0n,
    /** Rows that are committed and not deleted. */
    rows: new Map<bigint, 'free' | 'held'>(),
    statement: null as Statement | null,
    cursor: fromStart,
    floor: fromStart,
    topBefore: 0n,
    firstSeen: new Map() as FirstSeen,
    /** Rows of transactions that lived longer than anybody waits: the sweep's. */
    excused: new Set<bigint>(),
    /** Rows that were free at or below the cursor, and rows that lived at or below the floor, at any time. */
    passed: new Set<bigint>(),
    hidden: new Set<bigint>(),
  }
}

type World = ReturnType<typeof createWorld>

function assignXid(world: World): bigint {
  const xid = world.nextXid++
  world.running.add(xid)
  return xid
}

function complete(world: World, xid: bigint): void {
  world.running.delete(xid)
  if (xid > world.latestCompleted) world.latestCompleted = xid
}

/** As Postgres does: xmax is the latest *completed* transaction + 1, and only what runs below it is listed. */
function takeSnapshot({ latestCompleted, running }: World): Snapshot {
  const xmax = latestCompleted + 1n
  const listed = inOrder([...running].filter((xid) => xid < xmax))
  return { xmin: listed[0] ?? xmax, xmax, running: listed }
}

function inOrder(numbers: Iterable<bigint>): bigint[] {
  return [...numbers].sort((a, b) => (a < b ? -1 : 1))
}

function seqsOf({ rows }: World, state: 'free' | 'held'): bigint[] {
  return inOrder(rows.keys()).filter((seq) => rows.get(seq) === state)
}

function perform(world: World, step: Step): void {
  if (step.kind === 'write') write(world, step.slot, step.rows)
  else if ('slot' in step) end(world, step.slot, step.kind === 'commit')
  else if ('room' in step) goOn(world, step.kind === 'sweep', step.room)
  else if ('ms' in step) world.now += step.ms
  else changeRows(world, step)
}

/** In a transaction of its own, with an xid. */
function changeRows(world: World, step: Extract<Step, { kind: 'peer' } | { nth: number }>): void {
  const held = seqsOf(world, 'held')
  const nth = step.kind === 'peer' ? undefined : held[step.nth % Math.max(held.length, 1)]
  const taken = step.kind === 'peer' ? seqsOf(world, 'free').slice(0, step.rows) : []
  for (const seq of taken) world.rows.set(seq, 'held')
  if (nth !== undefined && step.kind === 'release') world.rows.set(nth, 'free')
  if (nth !== undefined && step.kind === 'delete') world.rows.delete(nth)
  complete(world, assignXid(world))
}

function write(world: World, slot: number, rows: number): void {
  const open = world.slots.get(slot)
  const transaction = open ?? { xid: assignXid(world), beganAt: world.now, seqs: [] }
  world.slots.set(slot, transaction)
  for (let row = 0; row < rows; row++) transaction.seqs.push(++world.top)
}

function end(world: World, slot: number, isCommit: boolean): void {
  const transaction = world.slots.get(slot)
  if (transaction === undefined) return
  world.slots.delete(slot)
  for (const seq of isCommit ? transaction.seqs : []) {
    world.rows.set(seq, 'free')
    if (world.now - transaction.beganAt >= patienceMs) world.excused.add(seq)
  }
  complete(world, transaction.xid)
}

function goOn(world: World, isSweep: boolean, room: number): void {
  const { statement, rows } = world
  if (statement === null) {
    const { after } = isSweep ? world.floor : world.cursor
    const seqs = inOrder(rows.keys()).filter((seq) => seq > after)
    const shown = seqs.map((seq) => [seq, rows.get(seq) === 'free'] as const)
    const snapshot = takeSnapshot(world)
    world.statement = { isSweep, room, sentAt: world.now, snapshot, shown, own: 0n, taken: [] }
  } else if (statement.own === 0n) {
    statement.own = assignXid(world)
    const free = statement.shown.map(([seq]) => seq).filter((seq) => rows.get(seq) === 'free')
    statement.taken = free.slice(0, statement.room)
    for (const seq of statement.taken) rows.set(seq, 'held')
  } else {
    complete(world, statement.own)
    learn(world, statement)
    world.statement = null
  }
}

function learn(world: World, { isSweep, room, sentAt, snapshot, shown, own, taken }: Statement): void {
  const { twist, top, topBefore } = world
  const horizon = horizonOf(snapshot, world.firstSeen, sentAt)
  const lowestFree = shown.find(([, isFree]) => isFree)?.[0] ?? null
  const facts: Facts = { snapshot, horizon, top, lowestFree }
  const [last, isFull] = [taken.at(-1) ?? null, taken.length >= room]
  const look = { last, isFull, own, topBefore, horizon: horizon.patient }
  world.cursor = advance(world.cursor, { ...look, ...twist.look?.(facts) })
  const sweepLook = { lowest: shown[0]?.[0] ?? null, own, topBefore, horizon: horizon.strict }
  if (isSweep) world.floor = raiseFloor(world.floor, { ...sweepLook, ...twist.sweepLook?.(facts) })
  world.firstSeen = horizon.firstSeen
  world.topBefore = top
}

function run(world: World, steps: readonly Step[]): World {
  for (const step of steps) {
    perform(world, step)
    for (const [seq, state] of world.rows) {
      if (state === 'free' && seq <= world.cursor.after) world.passed.add(seq)
      if (seq <= world.floor.after) world.hidden.add(seq)
    }
  }
  return world
}

/** So many whole statements. */
const looks = (kind: 'claim' | 'sweep', count = 1): Step[] =>
  Array.from({ length: 3 * count }, () => ({ kind, room: 1_000 }))

/** Lets the claimer's statement and every transaction end, without a further look. */
function runToEnd(steps: readonly Step[], twist: Twist = {}): World {
  const world = run(createWorld(twist), steps)
  while (world.statement !== null) run(world, [{ kind: 'claim', room: 1 }])
  for (const slot of [...world.slots.keys()]) run(world, [{ kind: 'commit', slot }])
  return world
}

const anySlot = fc.nat(3)
const anyRoom = fc.constantFrom(1, 2, 3, 100)
const writing = fc.record({ kind: fc.constant('write' as const), slot: anySlot, rows: fc.nat(2) })
const ending = fc.record({ kind: fc.constantFrom('commit' as const, 'rollback' as const), slot: anySlot })
const peers = fc.record({ kind: fc.constant('peer' as const), rows: fc.nat(3) })
const claiming = fc.record({ kind: fc.constant('claim' as const), room: anyRoom })
const sweeping = fc.record({ kind: fc.constant('sweep' as const), room: anyRoom })
const waiting = fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(50, 200, 300) })
const settled = fc.constantFrom('delete' as const, 'delete' as const, 'release' as const)
const settling = fc.record({ kind: settled, nth: fc.nat(5) })

const stepsOf = (...kinds: readonly fc.Arbitrary<Step>[]): fc.Arbitrary<Step[]> =>
  fc.array(fc.oneof(writing, writing, ending, peers, ...kinds), { maxLength: 80, size: 'max' })

const claimSteps = stepsOf(claiming, claiming, claiming)
const agedSteps = stepsOf(claiming, claiming, claiming, sweeping, waiting)
const sweepSteps = stepsOf(sweeping, sweeping, claiming, settling, settling, waiting)

/** B and C have their xids before A takes the lower seq; B commits the higher one; the claimer looks; C ends; it looks again; A commits. */
const fourSessions: readonly Step[] = [
  { kind: 'write', slot: 1, rows: 0 },
  { kind: 'write', slot: 2, rows: 0 },
  { kind: 'write', slot: 0, rows: 1 },
  { kind: 'write', slot: 1, rows: 1 },
  { kind: 'commit', slot: 1 },
  ...looks('claim'),
  { kind: 'commit', slot: 2 },
  ...looks('claim'),
  { kind: 'commit', slot: 0 },
]

function inAnyOrder(steps: fc.Arbitrary<Step[]>, sentence: (steps: readonly Step[]) => void): void {
  fc.assert(fc.property(steps, sentence), { numRuns: 1_000, examples: [[[...fourSessions]]] })
}

/** Whether some order of steps makes the sentence false: the same orders each time. */
function isRefuted(steps: fc.Arbitrary<Step[]>, sentence: (steps: readonly Step[]) => boolean): boolean {
  return fc.check(fc.property(steps, sentence), { seed: 1, numRuns: 50_000, endOnFailure: true }).failed
}

describe('the cursor, in any order of steps', () => {
  test('never passes a row that nobody has claimed, while no transaction is older than the patience', () => {
    inAnyOrder(claimSteps, (steps) => {
      expect(runToEnd(steps).passed).toEqual(new Set())
    })
  })

  test('lets later claims find everything without a sweep, and reaches the last seq, once all have ended', () => {
    inAnyOrder(claimSteps, (steps) => {
      const world = run(runToEnd(steps), looks('claim', 3))

      expect(seqsOf(world, 'free')).toEqual([])
      expect(world.cursor).toEqual({ after: world.top, marks: [] })
    })
  })

  test('passes only rows of transactions that lived 250 ms or longer', () => {
    inAnyOrder(agedSteps, (steps) => {
      const { passed, excused } = runToEnd(steps)

      expect([...passed].filter((seq) => !excused.has(seq))).toEqual([])
    })
  })

  test('does pass the rows of those: they hold nobody back', () => {
    expect(isRefuted(agedSteps, (steps) => runToEnd(steps).passed.size === 0)).toBe(true)
  })

  test.each<[string, Twist['look']]>([
    ['the snapshot’s xmax in place of the claim’s own xid', ({ snapshot }) => ({ own: snapshot.xmax })],
    ['the sequence’s value of the claim itself, not of the one before', ({ top }) => ({ topBefore: top })],
    ['a full claim taken for one that saw all', () => ({ isFull: false })],
    ['no regard for those that run', ({ snapshot }) => ({ horizon: snapshot.xmax })],
  ])('%s would pass some', (_title, look) => {
    expect(isRefuted(claimSteps, (steps) => runToEnd(steps, { look }).passed.size === 0)).toBe(true)
  })
})

describe('four sessions, of which one holds the lower seq with an xid above the first claim’s xmax', () => {
  test('the first claim sets its mark by its own xid, which that one is below', () => {
    const world = run(createWorld({}), fourSessions.slice(0, 8))

    expect(world.cursor).toEqual({ after: 0n, marks: [{ seq: 2n, own: 636_302n }] })
    expect(world.slots.get(0)).toMatchObject({ xid: 636_301n, seqs: [1n] })
  })

  test('the second claim does not pass it, and the third finds the row that came late', () => {
    const world = run(createWorld({}), fourSessions)
    const second = world.cursor.after
    run(world, looks('claim'))

    expect([second, world.cursor.after]).toEqual([0n, 2n])
    expect(seqsOf(world, 'held')).toEqual([1n, 2n])
  })

  test.each([
    ['at', 0n],
    ['above', 1n],
  ])('by a horizon %s the first claim’s xmax the second would pass it: the row is left', (_title, beyond) => {
    const look = ({ snapshot }: Facts): Partial<Look> => ({ own: snapshot.xmax + beyond })
    const world = run(createWorld({ look }), [...fourSessions, ...looks('claim')])

    expect(world.passed).toEqual(new Set([1n]))
    expect(seqsOf(world, 'free')).toEqual([1n])
  })
})

describe('the floor, in any order of steps', () => {
  test('never has a row that lives below it, however old the transactions are', () => {
    inAnyOrder(sweepSteps, (steps) => {
      expect(runToEnd(steps).hidden).toEqual(new Set())
    })
  })

  test('reaches the last seq once all have ended and nothing lives', () => {
    inAnyOrder(sweepSteps, (steps) => {
      const world = runToEnd(steps)
      world.rows.clear()
      run(world, looks('sweep', 3))

      expect(world.floor).toEqual({ after: world.top, marks: [] })
    })
  })

  test.each<[string, Twist['sweepLook']]>([
    ['the snapshot’s xmax in place of the sweep’s own xid', ({ snapshot }) => ({ own: snapshot.xmax })],
    ['no regard for old transactions', ({ horizon }) => ({ horizon: horizon.patient })],
    ['no regard for leased rows', ({ lowestFree }) => ({ lowest: lowestFree })],
    ['the sequence’s value of the sweep itself, not of the look before', ({ top }) => ({ topBefore: top })],
  ])('%s would hide some', (_title, sweepLook) => {
    expect(isRefuted(sweepSteps, (steps) => runToEnd(steps, { sweepLook }).hidden.size === 0)).toBe(true)
  })
})

/** A look that found nothing and is waited for by nobody, but for what is said. */
const lookOf = (said: Partial<Look>): Look => ({
  last: null,
  isFull: false,
  own: 10n,
  horizon: 10n,
  topBefore: 0n,
  ...said,
})
const marked = (after: bigint, ...marks: readonly (readonly [seq: bigint, own: bigint])[]): Cursor => ({
  after,
  marks: marks.map(([seq, own]) => ({ seq, own })),
})

describe('advance', () => {
  test.each<[string, Partial<Look>, Cursor]>([
    ['nothing was found and nothing given out', {}, marked(0n)],
    ['some were found: the last', { last: 7n }, marked(0n, [7n, 10n])],
    ['more were given out before: up to there', { last: 7n, topBefore: 9n }, marked(0n, [9n, 10n])],
    ['peers took everything: up to what was given out', { topBefore: 9n }, marked(0n, [9n, 10n])],
    ['it was full: the last', { last: 7n, isFull: true, topBefore: 9n }, marked(0n, [7n, 10n])],
    ['it was full of what was due: no mark', { isFull: true, topBefore: 9n }, marked(0n)],
  ])('marks what a claim has seen: %s', (_title, said, expected) => {
    expect(advance(fromStart, lookOf(said))).toEqual(expected)
  })

  test.each<[string, Partial<Look>, bigint]>([
    ['is when all that were older than its claim have ended', { horizon: 10n }, 5n],
    ['is not while one of them runs', { horizon: 9n }, 2n],
    ['is when a full claim got that far', { isFull: true, last: 5n }, 5n],
    ['is not when a full claim did not', { isFull: true, last: 4n }, 2n],
    ['is not when a claim was full of what was due', { isFull: true }, 2n],
  ])('a mark %s passed', (_title, said, after) => {
    expect(advance(marked(2n, [5n, 10n]), lookOf({ own: 20n, ...said })).after).toBe(after)
  })

  test('of several marks the highest that may be passed is, and what lies below it is forgotten', () => {
    const cursor = marked(0n, [3n, 10n], [9n, 12n], [6n, 14n], [11n, 16n])

    expect(advance(cursor, lookOf({ own: 20n, horizon: 12n }))).toEqual(marked(9n, [11n, 16n]))
  })

  test('at most 32 marks wait, and what is old enough is passed by the oldest of them', () => {
    let cursor = fromStart
    for (let own = 1n; own <= 100n; own++) cursor = advance(cursor, lookOf({ last: own, own, horizon: 0n }))

    expect(cursor.marks).toHaveLength(32)
    expect(cursor.marks.at(-1)).toEqual({ seq: 100n, own: 100n })
    expect(advance(cursor, lookOf({ own: 101n, horizon: 31n })).after).toBe(31n)
    expect(advance(cursor, lookOf({ own: 101n, horizon: 100n })).after).toBe(100n)
  })
})

describe('raiseFloor', () => {
  const floorAfter = (said: Partial<SweepLook>): Cursor =>
    raiseFloor(marked(2n, [5n, 10n]), { lowest: null, own: 20n, horizon: 10n, topBefore: 5n, ...said })

  test.each<[string, Partial<SweepLook>, Cursor]>([
    ['nothing lives up to the mark: raised', {}, marked(5n)],
    ['one that may still commit: not yet', { horizon: 9n }, marked(2n, [5n, 10n], [5n, 20n])],
    ['the lowest lives above the mark: raised, and marked below it', { lowest: 8n }, marked(5n, [7n, 20n])],
    ['the lowest is the mark: another is set below it', { lowest: 5n }, marked(2n, [4n, 20n])],
    ['the lowest is next to the floor: nothing', { lowest: 3n }, marked(2n)],
    ['the lowest lives below the floor after all: lowered', { lowest: 1n }, marked(0n)],
  ])('%s', (_title, said, expected) => {
    expect(floorAfter(said)).toEqual(expected)
  })
})
