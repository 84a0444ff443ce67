import { describe, expect, test } from 'vitest'
import type { Executor } from '../adapters/executor.ts'
import { resolveNames } from '../sql/names.ts'
import { validateSchema } from './validate-schema.ts'

const names = resolveNames({ schema: 's', table: 't' })
const parts = { autovacuum: true, deadLetters: 'table', delivered: 'delete' } as const
const nothing = { tables: [], view: null, routines: [], version: null }
const one = {
  relation: 't_meta',
  kind: 'r',
  isLogged: true,
  columns: [],
  indexes: [],
  checks: [],
  storage: {},
}

/** Answers with one catalogue after the other, or fails. */
function scripted(...answers: readonly (object | Error)[]) {
  const sent: string[] = []
  const executor: Executor = {
    async run<Row>({ text }: { readonly text: string }) {
      const answer = answers[sent.push(text) - 1]
      if (answer instanceof Error) throw answer
      return [{ catalogue: JSON.stringify(answer) }] as Row[]
    },
  }
  return { sent, validated: validateSchema(executor, names, parts) }
}

const failure = (code: string): Error => Object.assign(new Error('refused'), { code })

describe('validateSchema', () => {
  test('asks once when the version can be read', async () => {
    const { sent, validated } = scripted({ ...nothing, tables: [one], version: 1 })

    await expect(validated).rejects.toMatchObject({ code: 'OUTBOX_SCHEMA_DRIFT' })
    expect(sent).toHaveLength(1)
    expect(sent[0]).toContain('"t_meta"')
  })

  test.each(['42P01', '42703'])(
    'asks again without the version when that is not there (%s)',
    async (code) => {
      const { sent, validated } = scripted(failure(code), { ...nothing, tables: [one] })

      await expect(validated).rejects.toMatchObject({ code: 'OUTBOX_SCHEMA_DRIFT' })
      expect(sent).toHaveLength(2)
      expect(sent[1]).not.toContain('"t_meta"')
    },
  )

  test.each([failure('42501'), failure('08006'), new TypeError('broken')])(
    'passes another failure on (case %#)',
    async (error) => {
      const { sent, validated } = scripted(error)

      await expect(validated).rejects.toBe(error)
      expect(sent).toHaveLength(1)
    },
  )

  test('says that a schema was never made when no table is there', async () => {
    await expect(scripted(failure('42P01'), nothing).validated).rejects.toMatchObject({
      code: 'OUTBOX_SCHEMA_MISSING',
      message: expect.stringContaining('"s"."t"'),
    })
  })

  test('does not judge what a later version made', async () => {
    await expect(scripted({ ...nothing, tables: [one], version: 99 }).validated).rejects.toMatchObject({
      code: 'OUTBOX_SCHEMA_NEWER',
      message: expect.stringContaining('version 99'),
    })
  })
})
