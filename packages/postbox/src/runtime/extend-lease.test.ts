import { describe, expect, test } from 'vitest'
import { leaseOf } from '../../../../tests/support/delivery-bench.ts'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import { LeaseLostError } from '../core/errors.ts'
import { resolveNames } from '../sql/names.ts'
import type { Statement } from '../sql/statement.ts'
import { extendNow } from './extend-lease.ts'
import type { Lane } from './lane.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })

/** A lane whose statements get these answers, one after the other; `busy` happens before each of them has its turn. */
function benchOf(answers: readonly (readonly string[] | Error)[], busy: () => void = () => {}) {
  const clock = fakeClock()
  const sent: Statement<unknown>[] = []
  const run: Lane['run'] = async (given) => {
    busy()
    const statement = typeof given === 'function' ? given() : given
    if (statement === null) return []
    const answer = answers[sent.length] ?? []
    sent.push(statement)
    // As long as the server takes to answer.
    clock.advance(400)
    if (answer instanceof Error) throw answer
    return answer.map((seq) => ({ seq })) as never
  }
  return {
    parts: { lane: { run }, names, clock },
    clock,
    sent,
    namesSent: () => sent.map(({ name }) => name),
  }
}

const seqsOf = ({ values }: Statement<unknown>): string[] =>
  (JSON.parse(values[0] as string) as { seq: string }[]).map(({ seq }) => seq)

describe('extendNow', () => {
  test('renews the lease for its whole length, proved by its token', async () => {
    const { parts, sent, namesSent } = benchOf([['7']])
    await extendNow(parts, [leaseOf({ seq: '7', token: 'mine' })])

    expect(namesSent()).toEqual(['extend_leases'])
    expect(JSON.parse(sent[0]!.values[0] as string)).toEqual([{ seq: '7', token: 'mine', leaseMs: 30_000 }])
  })

  test('renews the leases of a large batch a thousand at a time', async () => {
    const helds = Array.from({ length: 2_500 }, (_, n) => leaseOf({ seq: String(n + 1) }))
    const all = helds.map(({ lease }) => lease.seq)
    const { parts, sent } = benchOf([all, all, all])
    await extendNow(parts, helds)

    expect(sent.map((statement) => seqsOf(statement).length)).toEqual([1_000, 1_000, 500])
    expect(sent.flatMap(seqsOf)).toEqual(all)
  })

  test('it ends a whole length after the statement was sent: not after it was asked for, not after the answer', async () => {
    const held = leaseOf()
    const { parts, clock } = benchOf([['1']], () => clock.advance(1_000))
    await extendNow(parts, [held])

    expect([held.deadline, clock.now()]).toEqual([1_000 + 30_000, 1_400])
  })

  test('a renewal that came meanwhile and lasts longer is not shortened', async () => {
    const held = leaseOf()
    held.deadline = 99_000
    await extendNow(benchOf([['1']]).parts, [held])

    expect(held.deadline).toBe(99_000)
  })

  test('a row that is locked, by its own transaction say, is still held: it ends when it would have', async () => {
    const held = leaseOf({ seq: '7', token: 'mine' })
    const { parts, sent, namesSent } = benchOf([[], ['7']])
    await extendNow(parts, [held])

    expect([namesSent(), held.deadline]).toEqual([['extend_leases', 'holds_leases'], 30_000])
    expect(sent[1]!.values).toEqual(['{7}', '{mine}'])
  })

  test('rejects when somebody else has it, and says which', async () => {
    const held = leaseOf({ seq: '7' })
    const { parts, namesSent } = benchOf([[], []])
    const extending = extendNow(parts, [held])

    await expect(extending).rejects.toBeInstanceOf(LeaseLostError)
    await expect(extending).rejects.toThrow('the lease on message id-7 of "orders" was taken over')
    expect([namesSent(), held.deadline]).toEqual([['extend_leases', 'holds_leases'], 30_000])
  })

  test('one that is known to be lost is not asked for', async () => {
    const held = leaseOf()
    held.isLost = true
    const { parts, sent } = benchOf([['1'], ['1']])

    await expect(extendNow(parts, [held])).rejects.toMatchObject({ code: 'OUTBOX_LEASE_LOST' })
    expect(sent).toEqual([])
  })

  test('one that is lost while the statement waits for its turn is not renewed', async () => {
    const held = leaseOf()
    const { parts, sent } = benchOf([['1'], ['1']], () => {
      held.isLost = true
    })

    await expect(extendNow(parts, [held])).rejects.toMatchObject({ code: 'OUTBOX_LEASE_LOST' })
    expect([sent, held.deadline]).toEqual([[], 30_000])
  })

  test.each([0, 1])(
    'a database that is away is said as it is, and nothing is taken for lost (statement %i)',
    async (at) => {
      const gone = new Error('connection refused')
      const held = leaseOf()
      const { parts } = benchOf([...Array(at).fill([]), gone])

      await expect(extendNow(parts, [held])).rejects.toBe(gone)
      expect([held.deadline, held.isLost]).toEqual([30_000, false])
    },
  )

  test('one that is lost while it is asked whether it is still held is lost, whatever the answer', async () => {
    const held = leaseOf()
    let asked = 0
    const { parts, namesSent } = benchOf([[], ['1']], () => {
      held.isLost = ++asked === 2
    })

    await expect(extendNow(parts, [held])).rejects.toBeInstanceOf(LeaseLostError)
    expect(namesSent()).toEqual(['extend_leases', 'holds_leases'])
  })

  test('several are renewed by one statement, and only those that were are longer in hand', async () => {
    const helds = ['1', '2', '3'].map((seq) => leaseOf({ seq }))
    const { parts, sent, namesSent, clock } = benchOf([['1', '3'], ['2']], () => clock.advance(1_000))
    await extendNow(parts, helds)

    expect(namesSent()).toEqual(['extend_leases', 'holds_leases'])
    expect(seqsOf(sent[0]!)).toEqual(['1', '2', '3'])
    // Whether it is still held is asked only for the one that was not renewed.
    expect(sent[1]!.values[0]).toBe('{2}')
    expect(helds.map(({ deadline }) => deadline)).toEqual([31_000, 30_000, 31_000])
  })

  test('of several, one that is lost is left out of the statement; the others are renewed, and it is said', async () => {
    const helds = ['1', '2', '3'].map((seq) => leaseOf({ seq }))
    helds[1]!.isLost = true
    const { parts, sent, clock } = benchOf([['1', '3']], () => clock.advance(1_000))

    await expect(extendNow(parts, helds)).rejects.toThrow('the lease on message id-2 of "orders"')
    expect(sent.map(seqsOf)).toEqual([['1', '3']])
    expect(helds.map(({ deadline }) => deadline)).toEqual([31_000, 30_000, 31_000])
  })

  test('of several, the first that somebody else has is said', async () => {
    const helds = ['1', '2', '3'].map((seq) => leaseOf({ seq }))
    const { parts } = benchOf([['1'], ['2']])

    await expect(extendNow(parts, helds)).rejects.toThrow('the lease on message id-3 of "orders"')
  })
})
