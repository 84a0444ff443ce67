import { describe, expect, test } from 'vitest'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import { idle } from '../../../../tests/support/lease-bench.ts'
import { resolveCommit, untilEnded } from './resolve-commit.ts'

/** A database that gives these answers, one after the other. */
function answering(...answers: readonly (string | null | Error)[]) {
  const clock = fakeClock()
  const giveUp = new AbortController()
  let asked = 0
  const run = async () => {
    const answer = answers[asked++]
    if (answer instanceof Error) throw answer
    return [{ status: answer }]
  }
  const resolving = resolveCommit('7', { lane: { run: run as never }, clock, giveUp: giveUp.signal })
  return { clock, giveUp, resolving, asked: () => asked }
}

const lost = Object.assign(new Error('connection lost'), { code: '08006' })
const fromTheFuture = Object.assign(new Error('transaction ID is in the future'), { code: '22023' })

describe('a COMMIT that was not answered', () => {
  test.each(['committed', 'aborted'] as const)('was %s if the database says so', async (status) => {
    expect(await answering(status).resolving).toBe(status)
  })

  test.each([
    ['nobody remembers it', null],
    ['a server answers that has never heard of it', fromTheFuture],
  ])('is unknown where %s', async (_, answer) => {
    expect(await answering(answer).resolving).toBe('unknown')
  })

  test('is asked for again, ever later, while it is under way and while nobody answers', async () => {
    const { clock, resolving, asked } = answering('in progress', lost, 'in progress', 'committed')
    for (const ms of [100, 200, 400]) {
      await idle()
      clock.advance(ms)
    }

    expect(await resolving).toBe('committed')
    expect(asked()).toBe(4)
    const [first = 0, second = 0, third = 0] = clock.asked
    expect([
      first >= 50 && first <= 100,
      second >= 100 && second <= 200,
      third >= 200 && third <= 400,
    ]).toEqual([true, true, true])
  })

  test('is unknown when nobody waits for it any longer', async () => {
    const { giveUp, resolving } = answering(lost, lost)
    await idle()
    giveUp.abort()

    expect(await resolving).toBe('unknown')
  })
})

describe('a transaction that failed, and may have outlived its connection', () => {
  test('is cancelled each time that it is found under way: its statement may have been on its way before', async () => {
    const clock = fakeClock()
    const statuses = ['in progress', 'in progress', 'in progress', 'aborted']
    const sent: string[] = []
    const run = async ({ name }: { readonly name: string }) => {
      sent.push(name)
      return name === 'read_transaction_status' ? [{ status: statuses.shift() }] : [{ cancelled: 'true' }]
    }
    const fenced = { seq: '1', xid: '7', pid: '8', patience: '0' }
    const ended = untilEnded(fenced, {
      ...{ lane: { run: run as never }, clock, statementTimeoutMs: 30_000 },
      giveUp: new AbortController().signal,
    })
    for (const ms of [100, 200, 400]) {
      await idle()
      clock.advance(ms)
    }

    expect(await ended).toBe('aborted')
    const round = ['read_transaction_status', 'cancel_transaction']
    expect(sent).toEqual([...round, ...round, ...round, 'read_transaction_status'])
  })
})
