import { expect, test } from 'vitest'
import type { Database } from './adapters/executor.ts'
import { createDeadLetters, type DeadLetters } from './dead-letters.ts'
import { resolveNames } from './sql/names.ts'
import { replayDeadLetter } from './sql/replay-dead-letter.ts'
import type { Statement } from './sql/statement.ts'
import type { Wake } from './sql/wake.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const id = '01890000-0000-7000-8000-00000000000a'

interface Answering {
  readonly deadLetters: DeadLetters
  readonly sent: readonly Statement<unknown>[]
}

/** Dead letters on a database that answers every statement with these rows. */
function answering(
  rows: readonly object[],
  { wake = 'quiet' as Wake, singleSession = false } = {},
): Answering {
  const sent: Statement<unknown>[] = []
  const run = async <Row>(statement: Statement<Row>): Promise<readonly Row[]> => {
    sent.push(statement)
    return rows as readonly Row[]
  }
  const database: Database = {
    run,
    transaction: (work) => work({ run }, null),
    singleSession,
    capacity: null,
  }
  const rules = { names, wake, queues: null, codec: undefined, maxBodyBytes: 1_000 }
  return { sent, deadLetters: createDeadLetters({ database: () => database, outbox: rules }) }
}

test.each<[string, (deadLetters: DeadLetters) => Promise<unknown>]>([
  ['list', ({ list }) => list({ limit: 0 })],
  ['count', ({ count }) => count({ reason: '' as never })],
  ['get', ({ get }) => get('1')],
  ['replay of what is no id', ({ replay }) => replay('1', { by: 'me' })],
  ['replay by nobody', ({ replay }) => replay(id, {} as never)],
  ['replayAll by nobody', ({ replayAll }) => replayAll({}, {} as never)],
  ['a dry run by nobody', ({ replayAll }) => replayAll({}, { dryRun: true } as never)],
  ['replayAll of nothing in particular', ({ replayAll }) => replayAll(undefined as never, { by: 'me' })],
  ['resume by nobody', ({ resume }) => resume(id, {} as never)],
  ['resume of what is no id', ({ resume }) => resume('1', { by: 'me' })],
  ['discard by nobody', ({ discard }) => discard({}, {} as never)],
  ['discard of an id by nobody', ({ discard }) => discard(id, {} as never)],
  ['discard of what is no id', ({ discard }) => discard('1', { by: 'me' })],
  ['discard of nothing in particular', ({ discard }) => discard(undefined as never, { by: 'me' })],
  ['operations', ({ operations }) => operations({ limit: 0 })],
  ['purge of any age', ({ purge }) => purge({} as never)],
])('%s refuses what it cannot use before it sends anything', async (_, call) => {
  const { deadLetters, sent } = answering([])

  await expect(call(deadLetters)).rejects.toMatchObject({ code: 'OUTBOX_INVALID_OPTION' })
  expect(sent).toEqual([])
})

test.each<[Wake, boolean, Wake]>([
  ['quiet', false, 'quiet'],
  ['quiet', true, 'always'],
  ['poll', true, 'poll'],
])(
  'with wake %s, and one session for everybody: %s, a replay wakes %s',
  async (wake, singleSession, used) => {
    const { deadLetters, sent } = answering([{ answer: 'replayed' }], { wake, singleSession })

    await deadLetters.replay(id, { by: 'me' })

    const query = { id, by: 'me', generation: null, delayMs: 0, historyLimit: 20 }
    expect(sent.at(-1)).toEqual(replayDeadLetter(names, { ...query, wake: used }))
  },
)

test('a replay whose answer has other columns is not taken for one that found nothing', async () => {
  const { deadLetters } = answering([{ Answer: 'replayed' }])

  await expect(deadLetters.replay(id, { by: 'me' })).rejects.toMatchObject({ code: 'OUTBOX_UNKNOWN_HANDLE' })
})
