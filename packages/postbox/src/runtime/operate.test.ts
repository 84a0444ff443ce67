import { describe, expect, test } from 'vitest'
import type { Database } from '../adapters/executor.ts'
import { resolveNames } from '../sql/names.ts'
import type { Statement } from '../sql/statement.ts'
import { type OperationParts, operate } from './operate.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const id = '01890000-0000-7000-8000-00000000000a'

/** A database in which so many rows are left; each of the first batches fails with the state that is scripted for it. */
function scripted(rows: number, states: readonly (string | null)[] = []) {
  const sizes: number[] = []
  const locks: unknown[] = []
  let [changed, failures] = [0, 0]
  const operation = () => ({ filter: '{}', settings: '{}', started: '0', place: null, ...progress() })
  const progress = () => ({ changed: String(changed), conflicts: '0', finished: String(changed === rows) })
  const run = async <Row>({ name, values }: Statement<Row>): Promise<readonly Row[]> => {
    if (name === 'lock_operation') {
      locks.push(values.at(-1))
      return [operation() as Row]
    }
    if (name !== 'batch') return []
    const [size] = values as [number]
    sizes.push(size)
    const code = states[failures++]
    if (code) throw Object.assign(new Error(code), { code })
    changed = Math.min(rows, changed + size)
    return [progress() as Row]
  }
  const database: Database = {
    run,
    transaction: (work) => work({ run }, null),
    singleSession: false,
    capacity: null,
  }
  const batch: OperationParts['batch'] = (_, size) => ({ name: 'batch', text: '', values: [size] })
  return { sizes, locks, parts: { database, names, id, kind: 'replay', batch } as const }
}

describe('an operation', () => {
  test('takes five hundred rows at a time, and gives way sooner than a deadlock is found', async () => {
    const { parts, sizes, locks } = scripted(1_200)

    expect(await operate(parts)).toEqual({ operation: id, changed: 1_200, conflicts: 0, finished: true })
    expect(sizes).toEqual([500, 500, 500])
    expect(locks).toEqual([null, '500', '500', '500'])
  })

  test.each([
    ['a timer that was armed meanwhile', '23505'],
    ['a lock that it would not wait for', '55P03'],
    ['a deadlock', '40P01'],
  ])('that meets %s goes on with fewer rows, then with more again', async (_, state) => {
    const { parts, sizes, locks } = scripted(600, [state, state, state])

    expect(await operate(parts)).toMatchObject({ changed: 600, finished: true })
    expect(sizes).toEqual([500, 62, 7, 1, 8, 64, 500, 500].slice(0, sizes.length))
    // A single row holds nobody up: it waits as long as its session does.
    expect(locks.slice(1, 5)).toEqual(['500', '500', '500', null])
  })

  test('gives up when a single row fails three times, and not before', async () => {
    const twice = scripted(1, ['23505', '23505', '23505', '23505', '23505'])
    const thrice = scripted(1, ['23505', '23505', '23505', '23505', '23505', '23505'])

    expect(await operate(twice.parts)).toMatchObject({ finished: true })
    await expect(operate(thrice.parts)).rejects.toMatchObject({ code: '23505' })
    expect(thrice.sizes).toEqual([500, 62, 7, 1, 1, 1])
  })

  test('ends with any other error at once', async () => {
    const { parts, sizes } = scripted(1, ['57P01'])

    await expect(operate(parts)).rejects.toMatchObject({ code: '57P01' })
    expect(sizes).toEqual([500])
  })

  test('is not taken for one that goes on for ever when its answer has other columns', async () => {
    const { parts } = scripted(1_000)
    const batch: OperationParts['batch'] = () => ({ name: 'other', text: '', values: [] })

    await expect(operate({ ...parts, batch })).rejects.toMatchObject({ code: 'OUTBOX_UNKNOWN_HANDLE' })
  })

  test('ignores what its listener throws, and what he promises', async () => {
    const { parts } = scripted(1_000)
    const told: number[] = []
    const onProgress = ({ changed }: { readonly changed: number }): unknown => {
      told.push(changed)
      if (changed === 500) throw new Error('no')
      return Promise.reject(new Error('neither'))
    }

    await operate({ ...parts, onProgress: onProgress as never })

    expect(told).toEqual([0, 500, 1_000])
  })
})
