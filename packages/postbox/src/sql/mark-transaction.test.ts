import { describe, expect, test } from 'vitest'
import type { Conflict, Draft } from '../core/message.ts'
import { cancelTimer } from './cancel-timer.ts'
import { insertMessage } from './insert-message.ts'
import { insertMessages } from './insert-messages.ts'
import { markTransaction, readMark } from './mark-transaction.ts'
import { resolveNames } from './names.ts'
import { peekPending } from './peek-pending.ts'
import type { Statement } from './statement.ts'
import type { Wake } from './wake.ts'
import { whereMarked } from './where-marked.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const hostile = `x'); drop table outbox; -- " \\ $1`
const wakes: readonly Wake[] = ['quiet', 'always', 'poll']
const conflicts: readonly Conflict[] = ['none', 'keep', 'replace']

const draft: Draft = {
  id: '0190163d-8694-739b-9aea-966c26f8ad91',
  queue: 'q',
  key: null,
  timerId: 't',
  conflict: 'keep',
  body: new Uint8Array(0),
  headers: null,
  schedule: { kind: 'now' },
  generation: null,
}

describe('the mark of a transaction', () => {
  const marked = (mark: string | null): Statement<unknown>[] => [
    ...wakes.flatMap((wake) =>
      conflicts.flatMap((conflict) => [
        insertMessage(names, { ...draft, conflict }, { wake, mark }),
        insertMessages(names, { queue: 'q', drafts: [draft], conflict }, { wake, mark }),
      ]),
    ),
    cancelTimer(names, { queue: 'q', timerId: 't', mark }),
    peekPending(names, { queue: 'q', limit: 5, mark }),
  ]

  test('is the last parameter of every statement for a transaction of the caller, and a condition of it', () => {
    for (const { name, text, values } of marked(hostile)) {
      expect([name, values.at(-1)]).toEqual([name, hostile])
      expect([name, text.split(whereMarked(`$${values.length}`)).length - 1]).toEqual([name, 1])
    }
  })

  test('is only a parameter: with none, the same text runs with null, unless it inserts one message', () => {
    const isOther = ({ name }: Statement<unknown>): boolean => name !== 'insert_message'
    const [without, withMark] = [marked(null).filter(isOther), marked(hostile).filter(isOther)]

    expect(without.map((statement) => statement.text)).toEqual(withMark.map((statement) => statement.text))
    expect(new Set(without.map((statement) => statement.values.at(-1)))).toEqual(new Set([null]))
    expect(without.map((statement) => statement.values.slice(0, -1))).toEqual(
      withMark.map((statement) => statement.values.slice(0, -1)),
    )
  })

  test('is a condition of one message, and without it the row is one of values', () => {
    const isOne = ({ name }: Statement<unknown>): boolean => name === 'insert_message'
    const [without, withMark] = [marked(null).filter(isOne), marked(hostile).filter(isOne)]

    expect(without.map((statement) => statement.text)).toEqual(
      withMark.map(({ text }) => text.replace(/^select (.*)\n where .*$/m, 'values ($1)')),
    )
    expect(without.map((statement) => statement.values)).toEqual(
      withMark.map(({ values }) => values.slice(0, -1)),
    )
  })

  test('changes nothing where it is null, and must be the one of the transaction where it is not', () => {
    expect(whereMarked('$3')).toBe(
      "($3::text is null or current_setting('postbox.transaction', true) = $3::text)",
    )
  })

  // `true` is "local": without it the mark would outlive the transaction, and tell nothing.
  test('is set until the transaction ends, and read where whereMarked looks', () => {
    expect(markTransaction(hostile)).toEqual({
      name: 'mark_transaction',
      text: "select set_config('postbox.transaction', $1::text, true) as mark",
      values: [hostile],
    })
    expect(readMark(hostile)).toEqual({
      name: 'read_mark',
      text: expect.stringContaining(
        "current_setting('postbox.transaction', true) is not distinct from $1::text",
      ),
      values: [hostile],
    })
  })

  test('stands before the conflict clause, where a timer that is replaced is guarded by it too', () => {
    for (const { text } of marked(null).filter((statement) => statement.name.startsWith('insert'))) {
      const conflict = text.indexOf('on conflict')

      expect(conflict === -1 || text.indexOf('postbox.transaction') < conflict).toBe(true)
    }
  })
})
