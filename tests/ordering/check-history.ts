import type { Absence, Commit, History, Promised, Rule, Run, Told, Verdict, Violation } from './history.ts'

/** A failing message blocks its key, and none is given up. */
export const strict: Promised = { letsPass: [], mayDie: false }

/**
 * Whether every message was delivered, and those of a key one at a time, in the order of their commits.
 *
 * A run holds its key from its record of having started until its record of having ended, its acceptance, or the death of its process, whichever
 * comes first. Both records lie within the run, so that what overlaps here has overlapped.
 *
 * Excused is one thing only, the *zombie*: a run whose lease ended while its process stood still (an absence covers the stored end of the
 * lease), against runs whose claim came after that end. Its handler cannot know, and nobody can stop it. It may overlap them, and it may be their
 * junior in the records when it was called in time and stood still before it could say so. Nothing else is excused: no lease that ended because a
 * process was slow, and no handler that was called after the end of its lease.
 */
export function checkHistory(history: History, promised: Promised = strict): Verdict {
  const committed = new Map(history.commits.map((commit) => [commit.id, commit]))
  const runsById = groupBy(history.runs, ({ id }) => id)
  const found: Found[] = [
    ...checkTold(history.told, committed),
    ...history.commits.flatMap((commit) => checkEnd(commit, runsById.get(commit.id) ?? [], promised)),
    ...history.runs.flatMap((run) => checkOrigin(run, committed)),
  ]
  const commitsByKey = groupBy(history.commits, ({ key }) => key)
  const runsByKey = groupBy(history.runs, ({ id }) => committed.get(id)?.key ?? null)
  for (const [key, runs] of runsByKey) {
    if (key === null) continue
    found.push(...checkKey({ key, commits: commitsByKey.get(key) ?? [], runs, history, promised }))
  }
  const told = (isExcused: boolean): readonly Violation[] =>
    found.filter((one) => one.isExcused === isExcused).map(({ violation }) => violation)
  return { violations: told(false), excused: told(true) }
}

interface Found {
  readonly violation: Violation
  readonly isExcused: boolean
}

type Subject = Pick<Commit, 'id' | 'key'>

interface OfKey {
  readonly key: string
  readonly commits: readonly Commit[]
  readonly runs: readonly Run[]
  readonly history: History
  readonly promised: Promised
}

function checkTold(told: Told, committed: ReadonlyMap<string, Commit>): readonly Found[] {
  const of = (id: string): Subject => ({ id, key: null })
  const unwritten = told.committed.filter((id) => !committed.has(id))
  const undead = told.rolledBack.filter((id) => committed.has(id))
  return [
    ...unwritten.map((id) => violated('lost', of(id), 'was published and committed, but is not in the log')),
    ...undead.map((id) => violated('invented', of(id), 'was rolled back, but is in the log')),
  ]
}

function checkEnd(commit: Commit, runs: readonly Run[], { mayDie }: Promised): readonly Found[] {
  const accepted = runs.filter((run) => run.accepted !== null)
  if (commit.gone === null) return [violated('lost', commit, 'is still there')]
  if (commit.gone.how === 'buried') return mayDie ? [] : [violated('dead', commit, 'was given up')]
  if (accepted.length === 0) return [violated('lost', commit, 'was deleted in the name of no run')]
  if (accepted.length > 1) return [violated('lost', commit, `was acknowledged ${accepted.length} times`)]
  const { outcome = 'done' } = accepted[0]?.ended ?? {}
  return outcome === 'done' ? [] : [violated('lost', commit, `was deleted for a run that had ${outcome}`)]
}

function checkOrigin(run: Run, committed: ReadonlyMap<string, Commit>): readonly Found[] {
  const { id, process, calledMs, lease } = run
  const of = committed.get(id) ?? { id, key: null }
  if (!committed.has(id)) return [violated('invented', of, `was run by ${process}, but never committed`)]
  if (lease === null) return [violated('invented', of, `was run by ${process} without a claim`)]
  const overdueMs = calledMs - lease.untilMs
  return overdueMs > 0
    ? [violated('late', of, `was called by ${process} ${overdueMs} ms after its lease`)]
    : []
}

function checkKey(ofKey: OfKey): readonly Found[] {
  return [...checkOrder(ofKey), ...checkOvertaking(ofKey), ...checkReturns(ofKey), ...checkOverlaps(ofKey)]
}

/** The runs that count: their starts, and the statements that wrote their ends. */
function checkOrder(ofKey: OfKey): readonly Found[] {
  const { key, commits, runs } = ofKey
  const accepted = new Map(runs.filter((run) => run.accepted !== null).map((run) => [run.id, run]))
  const inOrder = commits.flatMap(({ id }) => accepted.get(id) ?? [])
  return inOrder.flatMap((run, rank) => {
    const isBehind = (earlier: Run): boolean => isBefore(run, earlier) && !hasLetPass(earlier.id, run, ofKey)
    const earlier = inOrder.slice(0, rank).find(isBehind)
    if (earlier === undefined) return []
    const text = `was done before ${earlier.id}, which was committed earlier`
    return [violated('disorder', { id: run.id, key }, text)]
  })
}

function checkOvertaking(ofKey: OfKey): readonly Found[] {
  const { key, commits, runs, history } = ofKey
  const ranks = ranksOf(commits)
  return runs.flatMap((run) => {
    const earlier = commits.slice(0, ranks.get(run.id) ?? 0)
    const overtaken = earlier.find((commit) => isInTheWay(commit, run, ofKey))
    if (overtaken === undefined) return []
    const text = `was started by ${run.process} when ${overtaken.id}, which was committed earlier, was not out of the way`
    return [
      {
        violation: violation('overtaking', { id: run.id, key }, text),
        isExcused: isLateRecord(run, history.absences),
      },
    ]
  })
}

function isInTheWay({ id, gone }: Commit, run: Run, { runs, promised }: OfKey): boolean {
  if (gone !== null && gone.at.place <= run.started.place) return false
  return !hasLetPass(id, run, { runs, promised })
}

/** An earlier run of the message has ended in a way that lets others pass, before `run` started. */
function hasLetPass(id: string, run: Run, { runs, promised }: Pick<OfKey, 'runs' | 'promised'>): boolean {
  if (promised.letsPass.length === 0) return false
  return runs.some(
    ({ id: other, ended }) =>
      other === id &&
      ended !== null &&
      ended.at.place < run.started.place &&
      promised.letsPass.includes(ended.outcome),
  )
}

function checkReturns(ofKey: OfKey): readonly Found[] {
  const { key, commits, runs, history } = ofKey
  const ranks = ranksOf(commits)
  const rankOf = ({ id }: Run): number => ranks.get(id) ?? -1
  const found: Found[] = []
  let furthest: Run | undefined
  for (const run of runs) {
    if (furthest === undefined || rankOf(run) >= rankOf(furthest)) {
      furthest = run
      continue
    }
    if (hasLetPass(run.id, run, ofKey)) continue
    const text = `was started by ${run.process} after ${furthest.id}, which was committed later, had been`
    const isExcused = isLateRecord(run, history.absences)
    found.push({ violation: violation('return', { id: run.id, key }, text), isExcused })
  }
  return found
}

function checkOverlaps({ key, runs, history }: OfKey): readonly Found[] {
  const { absences } = history
  const found: Found[] = []
  let open: readonly { readonly run: Run; readonly end: number }[] = []
  for (const run of runs) {
    open = open.filter(({ end }) => end > run.started.place)
    for (const { run: other } of open) {
      const text = `was started by ${run.process} while ${other.process} ran ${other.id === run.id ? 'it' : other.id}`
      const isExcused = isZombieBeside(other, run, absences) || isZombieBeside(run, other, absences)
      found.push({ violation: violation('overlap', { id: run.id, key }, text), isExcused })
    }
    open = [...open, { run, end: endOf(run, absences) }]
  }
  return found
}

function endOf({ process, ended, accepted }: Run, absences: readonly Absence[]): number {
  const death = absences.find((absence) => absence.process === process && absence.to === null)
  const ends = [ended?.at, accepted ?? undefined, death?.from].flatMap((at) => at?.place ?? [])
  return Math.min(...ends, Number.POSITIVE_INFINITY)
}

/** The run's lease had ended, for want of a process to renew it, before the other was claimed. */
function isZombieBeside(run: Run, other: Run, absences: readonly Absence[]): boolean {
  if (run.lease === null || other.lease === null) return false
  return other.lease.claimed.ms >= run.lease.untilMs && stoodStillAt(run, run.lease.untilMs, absences)
}

/** It was called in time, and stood still before it could write that down. */
function isLateRecord(run: Run, absences: readonly Absence[]): boolean {
  if (run.lease === null || run.calledMs > run.lease.untilMs) return false
  return run.started.ms > run.lease.untilMs && stoodStillAt(run, run.lease.untilMs, absences)
}

function stoodStillAt({ process }: Run, ms: number, absences: readonly Absence[]): boolean {
  return absences.some(
    (absence) =>
      absence.process === process && absence.from.ms <= ms && (absence.to === null || ms <= absence.to.ms),
  )
}

/** One statement may write the ends of several: none is before another then. */
function isBefore(one: Run, other: Run): boolean {
  const isAcceptedBefore = (one.accepted?.place ?? 0) < (other.accepted?.place ?? 0)
  return one.started.place < other.started.place || isAcceptedBefore
}

function ranksOf(commits: readonly Commit[]): ReadonlyMap<string, number> {
  return new Map(commits.map(({ id }, index) => [id, index]))
}

function violated(rule: Rule, of: Subject, text: string): Found {
  return { violation: violation(rule, of, text), isExcused: false }
}

function violation(rule: Rule, { key, id }: Subject, text: string): Violation {
  return { rule, key, id, text: `${id} ${text}` }
}

function groupBy<T, K>(all: readonly T[], keyOf: (one: T) => K): ReadonlyMap<K, readonly T[]> {
  const groups = new Map<K, T[]>()
  for (const one of all) {
    const group = groups.get(keyOf(one))
    if (group === undefined) groups.set(keyOf(one), [one])
    else group.push(one)
  }
  return groups
}
