import { expect, test } from 'vitest'
import { forgetHandled } from './forget-handled.ts'
import { markHandled } from './mark-handled.ts'
import { resolveNames } from './names.ts'
import { purgeHandled } from './purge-handled.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const handled = { consumer: 'billing', id: 'order-1', mark: 'm' }

test('a mark waits for nobody: without its lock nothing is inserted, and a conflict is no error', () => {
  const { text, values, input } = markHandled(names, handled)

  expect(text).toContain('pg_try_advisory_xact_lock(')
  expect(text).toMatch(
    /insert into "public"\."outbox_handled".*\n.*\n\s*from locked\s+where got\s+on conflict do nothing/,
  )
  expect(values).toEqual(['billing', 'order-1', 'm'])
  expect(input).toBe(handled)
})

test('two outboxes do not keep each other from handling a message', () => {
  const other = resolveNames({ schema: 'public', table: 'other' })

  expect(markHandled(names, handled).text).toContain(`'postbox:public.outbox handled '`)
  expect(markHandled(other, handled).text).toContain(`'postbox:public.other handled '`)
})

test('outside the transaction that was marked nothing is locked, inserted or deleted', () => {
  expect(markHandled(names, handled).text).toMatch(/as got\s+where \(\$3::text is null or /)
  expect(forgetHandled(names, handled).text).toMatch(
    /where consumer = \$1::text\s+and id = \$2::text\s+and \(\$3::text is null or .*\)\s+returning id$/,
  )
  expect(forgetHandled(names, handled).values).toEqual(['billing', 'order-1', 'm'])
})

test('a purge takes the oldest, up to its limit, and steps over what another has in hand', () => {
  const { text, values } = purgeHandled(names, { olderThanMs: 5, consumer: null, limit: 7 })

  expect(text).toMatch(/order by h\.handled_at\s+limit \$3::int\s+for update skip locked/)
  expect(values).toEqual([5, null, 7])
})
