import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Conflict, Draft } from '../core/message.ts'
import { cancelTimer } from './cancel-timer.ts'
import { claimMessages, type Lane } from './claim-messages.ts'
import { deleteAcked } from './delete-acked.ts'
import { insertMessage, insertMessages } from './insert-messages.ts'
import { lockForPublishing } from './lock-for-publishing.ts'
import { resolveNames } from './names.ts'
import { peekPending } from './peek-pending.ts'
import { rescheduleRetried } from './reschedule-retried.ts'
import { lockForMigrating, readAppliedSteps, readSchemaState } from './schema-state.ts'
import type { Statement } from './statement.ts'
import type { Wake } from './wake.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const quoted = resolveNames({ schema: 'My "Schema', table: 'Out\\box' })
const uuid = '0190163d-8694-739b-9aea-966c26f8ad91'
const hostile = `x'); drop table outbox; -- " \\ $1`

const draft: Draft = {
  id: uuid,
  queue: hostile,
  key: hostile,
  timerId: hostile,
  conflict: 'keep',
  body: Buffer.from(hostile),
  headers: { [hostile]: hostile },
  schedule: { kind: 'at', epochMs: 1_700_000_000_000 },
  generation: 1,
}

const wakes: readonly Wake[] = ['quiet', 'always', 'poll']
const conflicts: readonly Conflict[] = ['none', 'keep', 'replace']
const lanes: readonly Lane[] = ['fresh', 'due']
const fence = { seq: '1', token: uuid }

/** Every statement that a value of a caller reaches. */
function carrying(text: string, given = names): Statement<unknown>[] {
  const own = {
    ...draft,
    queue: text,
    key: text,
    timerId: text,
    headers: { [text]: text },
    body: Buffer.from(text),
  }
  const inserts = wakes.flatMap((wake) =>
    conflicts.flatMap((conflict) => [
      insertMessage(given, { ...own, conflict }, wake),
      insertMessages(given, { queue: text, drafts: [own, own], conflict }, wake),
    ]),
  )
  const claims = lanes.map((lane) =>
    claimMessages(given, { queue: text, lane, limit: 5, token: text, leaseMs: 1_000 }),
  )
  return [
    ...inserts,
    ...claims,
    cancelTimer(given, text, text),
    peekPending(given, text, 10),
    deleteAcked(given, [{ seq: text, token: text }]),
    rescheduleRetried(given, [{ seq: text, token: text, delayMs: 1, error: text }]),
  ]
}

/** The parameters that a text uses, in order. */
function placeholders(text: string): number[] {
  const used = new Set(Array.from(text.matchAll(/\$(\d+)/g), (match) => Number(match[1])))
  return [...used].sort((a, b) => a - b)
}

describe('every statement', () => {
  test('carries values of callers as parameters: the text is the same whatever they are', () => {
    const texts = carrying('orders').map((statement) => statement.text)

    fc.assert(
      fc.property(fc.string({ unit: 'binary', minLength: 1 }), (value) => {
        expect(carrying(value).map((statement) => statement.text)).toEqual(texts)
      }),
      { examples: [[hostile], ["'"], ['$1'], ['\\']], numRuns: 20 },
    )
    expect(texts.some((text) => text.includes('drop table'))).toBe(false)
  })

  test('uses exactly the parameters it has values for', () => {
    const all = [
      ...carrying('orders'),
      readSchemaState(names),
      readAppliedSteps(names),
      lockForMigrating(names),
    ]

    for (const { name, text, values } of all) {
      expect([name, placeholders(text)]).toEqual([name, values.map((_, index) => index + 1)])
    }
  })

  test('quotes schema and table, with quotes and upper case in them', () => {
    const all = [...carrying('orders', quoted), lockForPublishing(quoted)]

    for (const { text } of all) expect(text).toContain('"My ""Schema"."Out\\box"')
  })

  test('names the channel of a schema with a backslash as an escaped literal', () => {
    const { text } = insertMessage(quoted, draft, 'always')

    expect(text).toContain(`pg_notify( E'postbox:My "Schema.Out\\\\box', $2::text)`)
  })
})

describe('the claim', () => {
  test.each(lanes)('of the %s lane steps over locked rows and counts the delivery', (lane) => {
    const { text, name } = claimMessages(names, {
      queue: 'orders',
      lane,
      limit: 5,
      token: uuid,
      leaseMs: 1_000,
    })

    expect(name).toBe(`claim_${lane}`)
    expect(text).toMatch(/for update skip locked\)\)\s+returning /)
    expect(text).toContain('deliveries = deliveries + 1')
    expect(text).toContain('(lease_token is null or leased_until < now())')
  })

  test('takes fresh rows by place and due rows by time', () => {
    const claim = (lane: Lane): string =>
      claimMessages(names, { queue: 'q', lane, limit: 5, token: uuid, leaseMs: 1 }).text

    expect(claim('fresh')).toMatch(/and due_at is null\s[\s\S]*order by queue, seq\s/)
    expect(claim('due')).toMatch(
      /\(queue, due_at\) <= \(\$1::text, now\(\)\)[\s\S]*order by queue, due_at, seq\s/,
    )
  })

  test('binds queue, token, lease and limit in this order', () => {
    const { values } = claimMessages(names, { queue: 'q', lane: 'due', limit: 5, token: uuid, leaseMs: 9 })

    expect(values).toEqual(['q', uuid, 9, 5])
  })
})

describe('the settling statements', () => {
  test.each([deleteAcked(names, [fence]), rescheduleRetried(names, [{ ...fence, delayMs: 5, error: 'e' }])])(
    '$name is fenced by the token and returns what it changed',
    ({ text }) => {
      expect(text).toMatch(
        /where m\.seq = s\.seq\s+and m\.lease_token = s\.token\s+returning m\.seq::text as seq$/,
      )
    },
  )

  test('take their rows as columns of equal length', () => {
    const other = { seq: '2', token: uuid.replace('1', '2') }
    const batch = [
      { ...fence, delayMs: 5, error: 'a' },
      { ...other, delayMs: 6, error: 'b' },
    ]

    expect(deleteAcked(names, [fence, other]).values).toEqual([
      ['1', '2'],
      [uuid, other.token],
    ])
    expect(rescheduleRetried(names, batch).values).toEqual([
      ['1', '2'],
      [uuid, other.token],
      [5, 6],
      ['a', 'b'],
    ])
  })

  test('a reschedule gives the lease up, counts the attempt and adds the delay to the clock of the database', () => {
    const { text } = rescheduleRetried(names, [])

    expect(text).toContain('due_at = now() + make_interval(secs => s.delay_ms / 1000)')
    expect(text).toContain('attempts = m.attempts + 1')
    expect(text).toMatch(/lease_token = null,\s+leased_until = null/)
  })
})

describe('the other statements', () => {
  // U-PUB-20
  test('a timer is cancelled only while nobody holds its lease', () => {
    const { text, values } = cancelTimer(names, 'q', 't')

    expect(text).toMatch(/^\s*delete from/)
    expect(text).toMatch(/and lease_token is null\s+and failed_at is null\s+returning /)
    expect(values).toEqual(['q', 't'])
  })

  // U-PUB-21
  test('what waits is read in the order of seq, for one queue or all, up to a limit, without a lock', () => {
    const { text, values } = peekPending(names, null, 10)

    expect(text).toContain('where ($1::text is null or queue = $1::text)')
    expect(text).toMatch(/order by "public"\."outbox"\.seq\s+limit \$2::int$/)
    expect(text).not.toMatch(/for (update|share)/)
    expect(values).toEqual([null, 10])
  })

  test('the lock for publishing is the one that an insert takes', () => {
    expect(lockForPublishing(names)).toEqual({
      name: 'lock_for_publishing',
      text: 'lock table "public"."outbox" in row exclusive mode',
      values: [],
    })
  })

  test('the state of the schema is asked for by names that Postgres parses', () => {
    expect(readSchemaState(quoted).values).toEqual([
      '"My ""Schema"',
      '"My ""Schema"."Out\\box_meta"',
      '"My ""Schema"."Out\\box"',
    ])
    expect(readAppliedSteps(names).text).toBe(
      'select version, breaking from "public"."outbox_meta" order by version',
    )
  })

  test('two outboxes do not wait for each other’s migrations', () => {
    const other = resolveNames({ schema: 'public', table: 'other' })

    expect(lockForMigrating(names).text).toContain(
      "pg_advisory_xact_lock(hashtextextended('postbox:public.outbox migrate', 0))",
    )
    expect(lockForMigrating(other).text).not.toBe(lockForMigrating(names).text)
  })
})
