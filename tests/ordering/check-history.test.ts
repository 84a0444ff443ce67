import { describe, expect, test } from 'vitest'
import { checkHistory, strict } from './check-history.ts'
import type { Absence, Commit, History, Moment, Promised, Run, Told } from './history.ts'

// A place is its own time: a commit a millisecond.
const at = (place: number): Moment => ({ place, ms: place })

/** Committed at `from`, deleted at `to`. */
function commit(
  id: string,
  [from, to]: readonly [number, number | null],
  given: Partial<Commit> = {},
): Commit {
  const gone = to === null ? null : ({ at: at(to), how: 'acked' } as const)
  return { id, key: 'k', committed: at(from), gone, ...given }
}

/** Ran from `from` to `to`, claimed just before, with a lease until 100. `acceptedAt` null: it was not. */
function run(
  id: string,
  [from, to]: readonly [number, number | null],
  given: Partial<Run> & { readonly acceptedAt?: number | null } = {},
): Run {
  const { acceptedAt = to === null ? null : to + 1, ...rest } = given
  return {
    id,
    process: 'P',
    calledMs: from,
    started: at(from),
    ended: to === null ? null : { at: at(to), outcome: 'done' },
    lease: { claimed: at(from - 1), untilMs: 100 },
    accepted: acceptedAt === null ? null : at(acceptedAt),
    ...rest,
  }
}

const failed = (place: number) => ({ ended: { at: at(place), outcome: 'failed' as const }, acceptedAt: null })

interface Given {
  readonly commits: readonly Commit[]
  readonly runs: readonly Run[]
  readonly absences?: readonly Absence[]
  readonly promised?: Promised
  readonly told?: Partial<Told>
}

function check({ commits, runs, absences = [], promised = strict, told }: Given) {
  const history: History = { commits, runs, absences, told: { committed: [], rolledBack: [], ...told } }
  const { violations, excused } = checkHistory(history, promised)
  const short = (all: typeof violations): readonly string[] => all.map(({ rule, id }) => `${rule} ${id}`)
  return { violations: short(violations), excused: short(excused) }
}

const sound = { violations: [], excused: [] }
const found = (...violations: readonly string[]) => ({ violations, excused: [] })

describe('a sound history', () => {
  test('is one where messages of a key run one after the other, each after the end of the one before', () => {
    const commits = [commit('a', [1, 7]), commit('b', [2, 12])]
    expect(check({ commits, runs: [run('a', [5, 6]), run('b', [10, 11])] })).toEqual(sound)
  })

  test('may have a message run again until it is done', () => {
    const commits = [commit('a', [1, 10]), commit('b', [2, 13])]
    const runs = [run('a', [5, 6], failed(6)), run('a', [8, 9]), run('b', [11, 12])]
    expect(check({ commits, runs })).toEqual(sound)
  })

  test('may have messages of other keys, and without a key, at the same time and in any order', () => {
    const commits = [
      commit('a', [1, 9], { key: 'one' }),
      commit('b', [2, 8], { key: 'two' }),
      commit('c', [3, 13], { key: null }),
      commit('d', [4, 12], { key: null }),
    ]
    const runs = [run('b', [5, 7]), run('a', [6, 8]), run('d', [9, 11]), run('c', [10, 12])]
    expect(check({ commits, runs })).toEqual(sound)
  })

  test('may have a run that never ended, when its process was killed', () => {
    const commits = [commit('a', [1, 22])]
    const runs = [run('a', [5, null]), run('a', [20, 21], { process: 'Q' })]
    const absences = [{ process: 'P', from: at(8), to: null }]
    expect(check({ commits, runs, absences })).toEqual(sound)
  })

  test('may have a handler go on after the transaction that ended its message', () => {
    const commits = [commit('a', [1, 6]), commit('b', [2, 10])]
    expect(check({ commits, runs: [run('a', [5, 8], { acceptedAt: 6 }), run('b', [7, 9])] })).toEqual(sound)
  })
})

describe('nothing is lost', () => {
  test('a message whose publisher was told that it is committed, and that is not in the log, is', () => {
    expect(check({ commits: [], runs: [], told: { committed: ['a'] } })).toEqual(found('lost a'))
  })

  test('a message that is still there is', () => {
    expect(check({ commits: [commit('a', [1, null])], runs: [] })).toEqual(found('lost a'))
  })

  test('a message that was deleted without a run is, with a key and without', () => {
    const commits = [commit('a', [1, 3]), commit('b', [2, 3], { key: null })]
    expect(check({ commits, runs: [] })).toEqual(found('lost a', 'lost b'))
  })

  test('a message that was deleted for a run that failed is', () => {
    const commits = [commit('a', [1, 7])]
    const runs = [run('a', [5, 6], { ended: { at: at(6), outcome: 'failed' }, acceptedAt: 7 })]
    expect(check({ commits, runs })).toEqual(found('lost a'))
  })

  test('a message that was acknowledged twice is found', () => {
    const commits = [commit('a', [1, 9])]
    expect(check({ commits, runs: [run('a', [5, 6]), run('a', [8, 9])] })).toEqual(found('lost a'))
  })

  test('a dead letter is found, unless they are expected', () => {
    const commits = [commit('a', [1, 9], { gone: { at: at(7), how: 'buried' } })]
    const runs = [run('a', [5, 6], failed(6))]
    expect(check({ commits, runs })).toEqual(found('dead a'))
    expect(check({ commits, runs, promised: { ...strict, mayDie: true } })).toEqual(sound)
  })
})

describe('nothing is invented', () => {
  test('a message that was rolled back, and is in the log, is found', () => {
    const given = { commits: [commit('a', [1, 7])], runs: [run('a', [5, 6])] }
    expect(check({ ...given, told: { rolledBack: ['a'] } })).toEqual(found('invented a'))
    expect(check({ ...given, told: { committed: ['a'], rolledBack: ['b'] } })).toEqual(sound)
  })

  test('a run of a message that was rolled back is found', () => {
    expect(check({ commits: [], runs: [run('a', [5, 6])] })).toEqual(found('invented a'))
  })

  test('a run without a claim is found', () => {
    const commits = [commit('a', [1, 7])]
    expect(check({ commits, runs: [run('a', [5, 6], { lease: null })] })).toEqual(found('invented a'))
  })

  test('a handler that was called after the end of its lease is found, even when its process stood still', () => {
    const commits = [commit('a', [1, 22])]
    const runs = [run('a', [20, 21], { lease: { claimed: at(4), untilMs: 10 } })]
    const absences = [{ process: 'P', from: at(8), to: at(19) }]
    expect(check({ commits, runs, absences })).toEqual(found('late a'))
  })
})

describe('messages of a key are run in the order of their commits', () => {
  test('one that was done before an earlier one is found: it was out of order, and has overtaken, and the other returned', () => {
    const commits = [commit('a', [1, 12]), commit('b', [2, 7])]
    const runs = [run('b', [5, 6]), run('a', [10, 11])]
    expect(check({ commits, runs })).toEqual(found('disorder b', 'overtaking b', 'return a'))
  })

  test('one whose end was written before that of an earlier one is found', () => {
    const commits = [commit('a', [1, 12]), commit('b', [2, 9])]
    const runs = [run('a', [5, 6], { acceptedAt: 12 }), run('b', [7, 8])]
    expect(check({ commits, runs })).toEqual(found('disorder b', 'overtaking b'))
  })

  test('those whose ends one statement wrote are in order, but the later one did not wait for it', () => {
    const commits = [commit('a', [1, 9]), commit('b', [2, 9])]
    const runs = [run('a', [5, 6], { acceptedAt: 9 }), run('b', [7, 8])]
    expect(check({ commits, runs })).toEqual(found('overtaking b'))
  })

  test('those whose ends one statement wrote are found when they were run the other way round', () => {
    const commits = [commit('a', [1, 11]), commit('b', [2, 11])]
    const runs = [run('b', [5, 6], { acceptedAt: 11 }), run('a', [8, 9], { acceptedAt: 11 })]
    expect(check({ commits, runs })).toEqual(found('disorder b', 'overtaking b', 'return a'))
  })

  test('one that was tried before an earlier one was done is found, though it was done after it', () => {
    const commits = [commit('a', [1, 9]), commit('b', [2, 13])]
    const runs = [run('b', [5, 6], failed(6)), run('a', [7, 8]), run('b', [11, 12])]
    expect(check({ commits, runs })).toEqual(found('overtaking b', 'return a'))
  })

  test('one that passed an earlier one that had failed is found, unless that is what the queue promises', () => {
    const commits = [commit('a', [1, 14]), commit('b', [2, 10])]
    const runs = [run('a', [5, 6], failed(6)), run('b', [8, 9]), run('a', [12, 13])]
    expect(check({ commits, runs })).toEqual(found('disorder b', 'overtaking b', 'return a'))
    const letting = (...letsPass: Promised['letsPass']): Promised => ({ ...strict, letsPass })
    expect(check({ commits, runs, promised: letting('failed') })).toEqual(sound)
    const passed = found('disorder b', 'overtaking b', 'return a')
    expect(check({ commits, runs, promised: letting('snoozed') })).toEqual(passed)
  })

  test('where a failed message lets others pass, one that another has let pass does not', () => {
    const commits = [commit('x', [1, 20]), commit('a', [2, 14]), commit('b', [3, 10])]
    const runs = [run('x', [5, 6], failed(6)), run('b', [8, 9]), run('a', [12, 13]), run('x', [18, 19])]
    const promised: Promised = { ...strict, letsPass: ['failed'] }
    expect(check({ commits, runs, promised })).toEqual(found('disorder b', 'overtaking b', 'return a'))
  })

  test('where a failed message lets others pass, one that has not failed yet does not', () => {
    const commits = [commit('a', [1, 14]), commit('b', [2, 7])]
    const runs = [run('b', [5, 6]), run('a', [8, 9], failed(9)), run('a', [12, 13])]
    const promised: Promised = { ...strict, letsPass: ['failed'] }
    expect(check({ commits, runs, promised })).toEqual(found('disorder b', 'overtaking b', 'return a'))
  })
})

describe('messages of a key are run one at a time', () => {
  test('two runs that overlap are found', () => {
    const commits = [commit('a', [1, 9]), commit('b', [2, 10])]
    const runs = [run('a', [5, 7], { acceptedAt: 9 }), run('b', [6, 8], { acceptedAt: 10 })]
    expect(check({ commits, runs })).toEqual(found('overtaking b', 'overlap b'))
  })

  test('two runs of the same message that overlap are found', () => {
    const commits = [commit('a', [1, 10])]
    const runs = [run('a', [5, 7], { acceptedAt: null }), run('a', [6, 9], { process: 'Q' })]
    expect(check({ commits, runs })).toEqual(found('overlap a'))
  })

  test('a run without an end goes on for ever, where its process was not killed', () => {
    const commits = [commit('a', [1, 22])]
    const runs = [run('a', [5, null]), run('a', [20, 21], { process: 'Q' })]
    const absences = [
      { process: 'P', from: at(8), to: at(9) },
      { process: 'R', from: at(8), to: null },
    ]
    expect(check({ commits, runs, absences })).toEqual(found('overlap a'))
  })
})

describe('a run whose lease ended while its process stood still', () => {
  const zombie = run('a', [5, 30], { lease: { claimed: at(4), untilMs: 15 }, acceptedAt: null })
  const another = (claimedAt: number) =>
    run('a', [20, 21], { process: 'Q', lease: { claimed: at(claimedAt), untilMs: 100 } })
  const stoodStill: Absence = { process: 'P', from: at(8), to: at(28) }
  const commits = [commit('a', [1, 22])]

  test('may overlap one that was claimed after that, and is counted', () => {
    const runs = [zombie, another(16)]
    expect(check({ commits, runs, absences: [stoodStill] })).toEqual({
      violations: [],
      excused: ['overlap a'],
    })
  })

  test('may not overlap one that was claimed before', () => {
    expect(check({ commits, runs: [zombie, another(14)], absences: [stoodStill] })).toEqual(
      found('overlap a'),
    )
  })

  test.each([
    ['nobody stood still', []],
    ['somebody else stood still', [{ ...stoodStill, process: 'Q' }]],
    ['it stood still before', [{ ...stoodStill, to: at(14) }]],
    ['it stood still afterwards', [{ ...stoodStill, from: at(16) }]],
  ])('is no excuse where %s', (_, absences) => {
    expect(check({ commits, runs: [zombie, another(16)], absences })).toEqual(found('overlap a'))
  })

  describe('and that could not say in time that it was started', () => {
    const both = [commit('a', [1, 22]), commit('b', [2, 36])]
    const late = run('a', [29, 30], { calledMs: 7, lease: { claimed: at(4), untilMs: 15 }, acceptedAt: null })
    const runs = (last: Run) => [another(16), run('b', [24, 35], { process: 'Q' }), last]

    test('may be behind and beside others in the records', () => {
      expect(check({ commits: both, runs: runs(late), absences: [stoodStill] })).toEqual({
        violations: [],
        excused: ['return a', 'overlap a'],
      })
    })

    test('is found when it was called too late, too', () => {
      const given = { commits: both, runs: runs({ ...late, calledMs: 29 }), absences: [stoodStill] }
      expect(check(given)).toEqual({ violations: ['late a', 'return a'], excused: ['overlap a'] })
    })

    test('is found when its process did not stand still', () => {
      expect(check({ commits: both, runs: runs(late) })).toEqual(found('return a', 'overlap a'))
    })
  })

  test('may not have overtaken anybody before', () => {
    const both = [commit('a', [1, 22]), commit('b', [2, 36])]
    const early = run('b', [5, 6], { lease: { claimed: at(4), untilMs: 15 }, acceptedAt: null })
    const runs = [early, another(16), run('b', [24, 35], { process: 'Q' })]
    expect(check({ commits: both, runs, absences: [stoodStill] })).toEqual(found('overtaking b', 'return a'))
  })
})
