import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Conflict, Draft } from '../core/message.ts'
import { cancelTimer } from './cancel-timer.ts'
import { claimMessages, type Lane } from './claim-messages.ts'
import { deleteAcked } from './delete-acked.ts'
import { insertMessage, insertMessages } from './insert-messages.ts'
import { markTransaction, readMark } from './mark-transaction.ts'
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
      insertMessage(given, { ...own, conflict }, { wake, mark: text }),
      insertMessages(given, { queue: text, drafts: [own, own], conflict }, { wake, mark: text }),
    ]),
  )
  const claims = lanes.map((lane) =>
    claimMessages(given, { queue: text, lane, limit: 5, token: text, leaseMs: 1_000 }),
  )
  return [
    ...inserts,
    ...claims,
    cancelTimer(given, { queue: text, timerId: text, mark: text }),
    peekPending(given, { queue: text, limit: 10, mark: text }),
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
      markTransaction('m'),
      readMark('m'),
      readSchemaState(names),
      readAppliedSteps(names),
      lockForMigrating(names),
    ]

    for (const { name, text, values } of all) {
      expect([name, placeholders(text)]).toEqual([name, values.map((_, index) => index + 1)])
    }
  })

  test('quotes schema and table, with quotes and upper case in them', () => {
    for (const { text } of carrying('orders', quoted)) expect(text).toContain('"My ""Schema"."Out\\box"')
  })

  test('names the channel of a schema with a backslash as an escaped literal', () => {
    const { text } = insertMessage(quoted, draft, { wake: 'always', mark: null })

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

  test('take any number of rows as one text for each column, or one JSON text', () => {
    const other = { seq: '2', token: uuid.replace('1', '2') }
    const batch = [
      { ...fence, delayMs: 5, error: 'a' },
      { ...other, delayMs: 6, error: 'b' },
    ]

    expect(deleteAcked(names, [fence, other]).values).toEqual(['{1,2}', `{${uuid},${other.token}}`])
    expect(deleteAcked(names, []).values).toEqual(['{}', '{}'])
    expect(rescheduleRetried(names, batch).values).toEqual([JSON.stringify(batch)])
  })

  // Some clients cannot encode an array, and some encode it as JSON.
  test.each([0, 1, 2])('bind no array of JavaScript, for %i rows', (count) => {
    const fences = Array.from({ length: count }, () => fence)
    const failed = fences.map((own) => ({ ...own, delayMs: 5, error: 'e' }))
    const values = [...deleteAcked(names, fences).values, ...rescheduleRetried(names, failed).values]

    expect(values.map((value) => typeof value)).toEqual(['string', 'string', 'string'])
  })

  // A client that knows the type of a parameter encodes for it: text is what it was given.
  test('declare their parameters as text before anything is made of them', () => {
    const declared = (text: string): string[] => text.match(/\$\d+::\w+/g) ?? []

    expect(declared(deleteAcked(names, [fence]).text)).toEqual(['$1::text', '$2::text'])
    expect(declared(rescheduleRetried(names, []).text)).toEqual(['$1::text'])
  })

  test('an error that needs escapes in JSON comes back as it was', () => {
    const error = `"\\\n\u2028😀'{}`
    const [value] = rescheduleRetried(names, [{ ...fence, delayMs: 5, error }]).values

    expect(JSON.parse(value as string)).toEqual([{ ...fence, delayMs: 5, error }])
  })

  test('a reschedule gives the lease up, counts the attempt and adds the delay to the clock of the database', () => {
    const { text } = rescheduleRetried(names, [])

    expect(text).toContain('due_at = now() + make_interval(secs => s."delayMs" / 1000)')
    expect(text).toContain('attempts = m.attempts + 1')
    expect(text).toMatch(/lease_token = null,\s+leased_until = null/)
  })
})

describe('the statements that read messages', () => {
  const reading = [
    ...lanes.map((lane) => claimMessages(names, { queue: 'q', lane, limit: 5, token: uuid, leaseMs: 1 })),
    peekPending(names, { queue: null, limit: 10, mark: null }),
  ]

  // A setting of the session or a parser of the client may alter any other type.
  test.each(reading)('$name gives every column as text', ({ text }) => {
    const columns = text.slice(text.search(/\bid::text as id/)).split(/\n\s*from |$/)[0] ?? ''
    const written = columns.split(/,\n/).map((column) => column.trim())

    for (const column of written) {
      expect(column).toMatch(
        /^(queue|key|timer_id as timer|encode\(body, 'base64'\) as body|\S.*::text as [a-z]+)$/,
      )
    }
    expect(written.length).toBeGreaterThanOrEqual(10)
  })

  test.each(reading)('$name gives the body in base64, not as bytea', ({ text }) => {
    expect(text.match(/\bbody\b/g)).toHaveLength(2)
    expect(text).toContain("encode(body, 'base64') as body")
  })
})

describe('the other statements', () => {
  // U-PUB-20
  test('a timer is cancelled only while nobody holds its lease', () => {
    const { text, values } = cancelTimer(names, { queue: 'q', timerId: 't', mark: 'm' })

    expect(text).toMatch(/^\s*delete from/)
    expect(text).toMatch(
      /and lease_token is null\s+and failed_at is null\s+and \(\$3::text is null or .*\)\s+returning /,
    )
    expect(values).toEqual(['q', 't', 'm'])
  })

  // U-PUB-21
  test('what waits is read in the order of seq, for one queue or all, up to a limit, without a lock', () => {
    const { text, values } = peekPending(names, { queue: null, limit: 10, mark: 'm' })

    expect(text).toContain('where ($1::text is null or queue = $1::text)')
    expect(text).toMatch(/order by "public"\."outbox"\.seq\s+limit \$2::int$/)
    expect(text).not.toMatch(/for (update|share)/)
    expect(values).toEqual([null, 10, 'm'])
  })

  test('the state of the schema is asked for by names that Postgres parses', () => {
    expect(readSchemaState(quoted).values).toEqual([
      '"My ""Schema"',
      '"My ""Schema"."Out\\box_meta"',
      '"My ""Schema"."Out\\box"',
    ])
    expect(readAppliedSteps(names).text).toBe(
      'select version::text as version, breaking::text as breaking from "public"."outbox_meta" as m order by m.version',
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
