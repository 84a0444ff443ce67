import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { resolveNames } from './names.ts'
import { createReplayFunction, replayFunction, revokeReplayFunction } from './replay-function.ts'
import { statusView } from './status-view.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16)

// A schema that is at the current version is not touched by `migrate`: a text that changed would never arrive there.
test('the function and the view are those of the last step that made them; when one changes, a step has to make it anew', () => {
  const { body } = replayFunction(names)
  const { definition } = statusView(names, { dead: true, delivered: true })

  expect([hashOf(body), hashOf(definition)]).toEqual(['3f75c09297379e3c', '1257d8f1fb0c4168'])
})

test('the function names its arguments by number alone, so that none of them can be taken for a column', () => {
  const { body } = replayFunction(names)
  const code = body.replaceAll(/'(?:[^']|'')*'/g, '')

  expect(code).not.toMatch(/event_id|p_new_generation|p_replayed_by/)
  expect(new Set(code.match(/\$\d+/g))).toEqual(new Set(['$1', '$2', '$3']))
})

test('whatever a table is called, its name stays inside the quotes of the body', () => {
  const odd = resolveNames({ schema: '$postbox$', table: `a$postbox1$;'\\` })
  const text = createReplayFunction(odd, { replace: false })

  const [, mark, body] = text.match(/\nas (\$\w+\$)([\s\S]*)\1$/) ?? []
  expect(mark).toBe('$postbox2$')
  expect(body).toBe(replayFunction(odd).body)
  expect(body).not.toContain(mark)
})

test('every table in it has its schema, and it has the rights of its owner, which public has not', () => {
  const text = createReplayFunction(names, { replace: true })

  expect(text.match(/(?:from|into|update) "[^"]+"(?!\.)/g)).toBeNull()
  expect(text).toMatch(
    /^create or replace function .*\n[\s\S]*security definer\n {2}set search_path = pg_catalog, pg_temp\n/,
  )
  expect(revokeReplayFunction(names)).toBe(
    'revoke all on function "public"."outbox_replay"(uuid, bigint, text) from public',
  )
})
