import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { deleteAcked } from '../../sql/delete-acked.ts'
import type { insertMessages } from '../../sql/insert-messages.ts'
import { beginReadCommitted, commit, readIsolation, rollback, setReadCommitted } from '../../sql/isolation.ts'
import { resolveNames } from '../../sql/names.ts'
import { readCatalogue } from '../../sql/read-catalogue.ts'
import type { Statement } from '../../sql/statement.ts'
import { createMemoryDatabase } from './create-memory-database.ts'
import type { Operation } from './operation.ts'
import { operations, patient } from './operations.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })

/** The names in a folder's sources: a statement that is added is found by itself. */
function namesIn(folder: 'sql' | 'runtime'): readonly string[] {
  const place = new URL(`../../${folder}/`, import.meta.url)
  const files = readdirSync(place).filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
  const texts = files.map((file) => readFileSync(new URL(file, place), 'utf8'))
  return texts.flatMap((text) => Array.from(text.matchAll(/\bname: '([a-z_]+)'/g), ([, name = '']) => name))
}

describe('the memory store', () => {
  test('does something for every statement, but those that read or make a schema and those of a session', () => {
    const without = [
      'read_catalogue',
      'migrate',
      ...[beginReadCommitted, commit, rollback].map(({ name }) => name),
    ]
    const all = [...namesIn('sql'), ...namesIn('runtime'), setReadCommitted.name, ...without.slice(2)]

    expect(all.filter((name) => !operations.has(name)).toSorted()).toEqual(without.toSorted())
    expect([...operations.keys()].filter((name) => !all.includes(name))).toEqual([])
    expect([...patient].filter((name) => !operations.has(name))).toEqual([])
  })

  test.each<readonly [string, Statement<unknown>, string]>([
    ['that it does not know', { name: 'count_stars', text: 'select 1', values: [] }, '`count_stars`'],
    [
      'whose name is a member of every object',
      { name: 'constructor', text: '', values: [] },
      '`constructor`',
    ],
    ['that reads the catalogue', readCatalogue(names, { version: true }), 'has no schema'],
  ])('refuses a statement %s, and says which', async (_, statement, says) => {
    const database = createMemoryDatabase({ now: () => 0 })
    const refusal = { code: 'OUTBOX_NO_SQL', message: expect.stringContaining(says) }

    await expect(database.run(statement)).rejects.toMatchObject(refusal)
    await expect(database.begin().run(statement)).rejects.toMatchObject(refusal)
    expect(() => database.runNow(statement)).toThrow(says)
  })

  test('goes by what a statement was made of, not by its text', () => {
    const database = createMemoryDatabase({ now: () => 0 })

    expect(database.runNow({ ...readIsolation, text: '' })).toEqual([{ isolation: 'read committed' }])
    expect(database.runNow({ ...deleteAcked(names, []), text: '' })).toEqual([])
  })

  test('does not compile when a statement is made of something else, or returns something else', () => {
    // @ts-expect-error a draft has no such member
    const taken: Operation<typeof insertMessages> = (_, drafts) => drafts.map(({ colour }) => colour)
    // @ts-expect-error a row has a seq, too
    const given: Operation<typeof insertMessages> = (_, drafts) => drafts.map(({ id }) => ({ id }))

    expect([taken, given]).toHaveLength(2)
  })
})
