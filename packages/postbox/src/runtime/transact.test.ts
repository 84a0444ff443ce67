import { describe, expect, test } from 'vitest'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import { idle, leased } from '../../../../tests/support/lease-bench.ts'
import { createDecision } from '../core/decision.ts'
import { resolveNames } from '../sql/names.ts'
import type { Statement } from '../sql/statement.ts'
import type { FailpointName } from './failpoint.ts'
import { transact } from './transact.ts'
import type { Transacted } from './transaction-run.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const lost = Object.assign(new Error('connection lost'), { code: '08006' })
const reason = new Error('told to give up')

interface Given {
  /** What becomes of the COMMIT, and of the ROLLBACK. */
  commit?(): Promise<void>
  rollback?(): Promise<void>
  work?(signal: AbortSignal): Promise<string>
  /** What a statement inside the transaction is answered with. */
  answer?(statement: Statement<unknown>): Promise<readonly unknown[]>
  reach?(name: FailpointName): Promise<void>
  /** What the database says of it; null: the database is away. */
  readonly status?: string | null
}

/** A transaction on a client that does as it is told, and what became of it. */
function transacting(given: Given) {
  const { commit = async () => {}, rollback = async () => {}, work = async () => 'its value' } = given
  const { answer, reach = async () => {}, status = 'aborted' } = given
  const clock = fakeClock()
  const [abort, giveUp] = [new AbortController(), new AbortController()]
  const ends: string[] = []
  const onLane: string[] = []
  const own = (statement: Statement<unknown>) =>
    answer?.(statement) ?? Promise.resolve([{ seq: '1', xid: '7', pid: '9' }])
  const member: Transacted = {
    held: leased(1),
    decision: createDecision(),
    followOns: [],
    isSealed: false,
  }
  const committed = transact(
    { members: [member], signal: abort.signal, work: () => work(abort.signal) },
    {
      clock,
      giveUp: giveUp.signal,
      statementTimeoutMs: 10_000,
      rules: { names, wake: 'poll', deadLetters: 'table', delivered: 'delete' },
      failpoint: { reach },
      lane: {
        async run({ name }: Statement<unknown>) {
          onLane.push(name)
          if (status === null) throw lost
          return name === 'read_transaction_status' ? [{ status }] : []
        },
      } as never,
      open: async () => ({
        async transaction(work) {
          try {
            const value = await work({ run: own as never }, null)
            await commit()
            ends.push('committed')
            return value
          } catch (error) {
            await rollback()
            ends.push('rolled back')
            throw error
          }
        },
      }),
    },
  )
  committed.catch(() => {})
  return { committed, abort, giveUp, clock, ends, onLane, member }
}

const hanging = (): Promise<never> => new Promise(() => {})

describe('a transaction of a handler', () => {
  test('that commits gives the value of its work, and is the end of its message', async () => {
    const { committed, member, ends } = transacting({})

    expect(await committed).toBe('its value')
    expect(ends).toEqual(['committed'])
    expect(member.decision.outcome).toEqual({ kind: 'committed', followOns: 0 })
    expect(member).toMatchObject({ isSealed: true, held: { isFenced: true } })
  })

  test.each<FailpointName>(['transaction_fenced', 'transaction_worked', 'before_commit'])(
    'that is told to give up at %s is rolled back, and its message let go',
    async (point) => {
      const { committed, member, abort, ends } = transacting({
        async reach(name) {
          if (name === point) abort.abort(reason)
        },
      })

      await expect(committed).rejects.toBe(reason)
      await idle()
      expect(ends).toEqual(['rolled back'])
      expect(member.decision.outcome).toBeNull()
      expect(member).toMatchObject({ isSealed: false, held: { isFenced: false } })
    },
  )

  test('that the client has begun to end gets no statement of ours any more: its connection may be anybody’s by then', async () => {
    const sent: string[] = []
    const { committed, abort, clock } = transacting({
      async answer({ name }) {
        sent.push(name)
        return [{ seq: '1', xid: '7', pid: '9' }]
      },
      work: (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(reason))),
      rollback: async () => {
        sent.push('rollback')
        for (let pause = 0; pause < 3; pause++) {
          await idle()
          clock.advance(20)
        }
        await idle()
      },
    })
    await idle()
    abort.abort(reason)

    await expect(committed).rejects.toBe(reason)
    expect(sent).toEqual(['fence_transaction', 'rollback'])
  })

  test('that is told to give up while it commits goes on', async () => {
    const { committed, abort } = transacting({
      async commit() {
        abort.abort(reason)
      },
    })

    expect(await committed).toBe('its value')
  })

  test('that waits for a connection is protected by its lease alone, until it has its messages', async () => {
    const noted: boolean[] = []
    const { committed, member } = transacting({
      async answer({ name }) {
        if (name === 'fence_transaction') noted.push(member.held.isFenced)
        return [{ seq: '1', xid: '7', pid: '9' }]
      },
      reach: async (name) => void (name === 'transaction_fenced' && noted.push(member.held.isFenced)),
    })
    await committed

    expect(noted).toEqual([false, true])
  })

  test('that was told to give up before it began does not begin', async () => {
    const abort = new AbortController()
    abort.abort(reason)
    const never = { members: [], signal: abort.signal, work: () => expect.fail('it was run') }
    const open = () => expect.fail('it was opened')

    await expect(transact(never, { open } as never)).rejects.toBe(reason)
  })

  test('that does not end, though it was told to, is left to the lease of its message', async () => {
    const { committed, member, abort, clock, onLane } = transacting({
      answer: (statement) =>
        statement.name === 'fence_transaction'
          ? Promise.resolve([{ seq: '1', xid: '7', pid: '9' }])
          : hanging(),
      reach: (name) => (name === 'transaction_fenced' ? hanging() : Promise.resolve()),
    })
    await idle()
    abort.abort(reason)
    await idle()
    clock.advance(10_000)

    await expect(committed).rejects.toBe(reason)
    expect(new Set(onLane)).toEqual(new Set(['cancel_transaction']))
    expect(member.decision.outcome).toEqual({ kind: 'unresolved', mayHaveLanded: false })
  })

  test('that has failed, and whose locks are still there after a while, is left to the lease of its message', async () => {
    const { committed, member, clock, onLane } = transacting({
      reach: (name) => (name === 'transaction_worked' ? Promise.reject(lost) : Promise.resolve()),
      status: 'in progress',
    })
    for (let n = 0; n < 4; n++) {
      await idle()
      clock.advance(5_000)
    }

    await expect(committed).rejects.toBe(lost)
    expect(onLane.filter((name) => name === 'cancel_transaction')).toHaveLength(2)
    expect(member.decision.outcome).toEqual({ kind: 'unresolved', mayHaveLanded: false })
  })

  test.each([
    ['committed', { kind: 'committed', followOns: 0 }],
    ['aborted', null],
  ])('whose COMMIT is not answered in time is asked after: %s', async (status, outcome) => {
    const { committed, member, clock } = transacting({ commit: hanging, status })
    await idle()
    clock.advance(10_000)
    await idle()

    if (outcome === null) await expect(committed).rejects.toMatchObject({ code: 'OUTBOX_STATEMENT_TIMEOUT' })
    else expect(await committed).toBe('its value')
    expect(member.decision.outcome).toEqual(outcome)
  })

  test('whose COMMIT is not answered when its time is over is asked after at once', async () => {
    const { committed, abort } = transacting({ commit: hanging, status: 'committed' })
    await idle()
    abort.abort(reason)

    expect(await committed).toBe('its value')
  })

  test('whose COMMIT nobody can tell of is left to the lease of its message', async () => {
    const { committed, member, giveUp, onLane } = transacting({
      commit: () => Promise.reject(lost),
      status: null,
    })
    await idle()
    giveUp.abort()

    await expect(committed).rejects.toBe(lost)
    expect(onLane).toContain('read_transaction_status')
    expect(member.decision.outcome).toEqual({ kind: 'unresolved', mayHaveLanded: true })
  })

  test('whose COMMIT was refused is asked for by nobody', async () => {
    const refused = Object.assign(new Error('once'), { code: '23505' })
    const { committed, member, onLane } = transacting({ commit: () => Promise.reject(refused) })

    await expect(committed).rejects.toBe(refused)
    expect(onLane).toEqual([])
    expect(member.decision.outcome).toBeNull()
  })

  test('asks again where a client refuses to send the statement that ends it', async () => {
    let refusals = 0
    const { committed, abort, clock } = transacting({
      async answer({ name }) {
        if (name !== 'doom_transaction') return [{ seq: '1', xid: '7', pid: '9' }]
        throw Object.assign(new Error('busy'), refusals++ === 0 ? {} : { code: '25P02' })
      },
      reach: (name) => (name === 'transaction_fenced' ? hanging() : Promise.resolve()),
    })
    await idle()
    abort.abort(reason)
    for (let n = 0; n < 3; n++) {
      await idle()
      clock.advance(20)
    }

    await expect(committed).rejects.toBe(reason)
    expect(refusals).toBe(2)
  })
})
