import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Conflict, Draft } from '../core/message.ts'
import { buryDead } from './bury-dead.ts'
import { cancelTimer } from './cancel-timer.ts'
import { type ClaimedQueue, claimMessages } from './claim-messages.ts'
import { countMessages } from './count-messages.ts'
import { deleteAcked } from './delete-acked.ts'
import { extendLeases, holdsLeases } from './extend-leases.ts'
import { insertMessage, insertMessages } from './insert-messages.ts'
import { beginReadCommitted, commit, readIsolation, rollback, setReadCommitted } from './isolation.ts'
import { markTransaction, readMark } from './mark-transaction.ts'
import { resolveNames } from './names.ts'
import { peekPending } from './peek-pending.ts'
import { releaseLeases } from './release-leases.ts'
import { rescheduleRetried } from './reschedule-retried.ts'
import { lockForMigrating, readAppliedSteps, readSchemaState } from './schema-state.ts'
import { checkClear, getUp, lieDown, sendWord } from './sleep.ts'
import type { Statement } from './statement.ts'
import type { Wake } from './wake.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const quoted = resolveNames({ schema: 'My "Schema', table: 'Out\\box' })
const uuid = '0190163d-8694-739b-9aea-966c26f8ad91'
const hostile = `x'); drop table outbox; -- " \\ $1`
// Half a character, too. Not 'binary' of fast-check: it takes seconds to begin.
const anyUnit = fc.nat(0xffff).map((code) => String.fromCharCode(code))

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
const fence = { seq: '1', token: uuid }

const anyQueue = { leaseMs: 1_000, after: '7', dueFromMs: null, sweep: false }
const wanted = (queue: string, room = 5): ClaimedQueue => ({ queue, room, ...anyQueue })

function settling(text: string, given = names): Statement<unknown>[] {
  const own = { seq: text, token: text }
  return [
    deleteAcked(given, [own]),
    rescheduleRetried(given, [{ ...own, delayMs: 1, error: text }]),
    releaseLeases(given, [own]),
    buryDead(given, [{ ...own, reason: text, error: text }]),
  ]
}

const sleeping = (text: string, given = names): Statement<unknown>[] =>
  [lieDown, checkClear, getUp].map((statement) => statement(given, [text]))

/** Every statement on messages that a value of a caller reaches. */
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
  return [
    ...inserts,
    ...settling(text, given),
    claimMessages(given, { token: text, queues: [wanted(text)] }),
    cancelTimer(given, { queue: text, timerId: text, mark: text }),
    peekPending(given, { queue: text, limit: 10, mark: text }),
    extendLeases(given, [{ seq: text, token: text, leaseMs: 1 }]),
    holdsLeases(given, [{ seq: text, token: text }]),
    countMessages(given, [text], 10),
  ]
}

/** The parameters that a text uses, in order. */
function placeholders(text: string): number[] {
  const used = new Set(Array.from(text.matchAll(/\$(\d+)/g), (match) => Number(match[1])))
  return [...used].sort((a, b) => a - b)
}

describe('every statement', () => {
  test('carries values of callers as parameters: the text is the same whatever they are', () => {
    const textsFor = (value: string): string[] =>
      [...carrying(value), ...sleeping(value), sendWord(value)].map((statement) => statement.text)
    const texts = textsFor('orders')

    fc.assert(
      fc.property(fc.string({ unit: anyUnit, minLength: 1 }), (value) => {
        expect(textsFor(value)).toEqual(texts)
      }),
      { examples: [[hostile], ["'"], ['$1'], ['\\']], numRuns: 20 },
    )
    expect(texts.some((text) => text.includes('drop table'))).toBe(false)
  })

  test('uses exactly the parameters it has values for', () => {
    const all = [
      ...carrying('orders'),
      ...sleeping('orders'),
      sendWord('channel'),
      ...[readIsolation, setReadCommitted, beginReadCommitted, commit, rollback],
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
    for (const { text } of [...sleeping('orders', quoted), releaseLeases(quoted, [])])
      expect(text).toContain(` E'postbox:My "Schema.Out\\\\box`)
  })

  // A client that knows the type of a parameter encodes for it: text is what it was given.
  test('declares what it is given as text before anything is made of it, numbers aside', () => {
    const all = [...settling('1'), ...sleeping('q'), extendLeases(names, []), holdsLeases(names, [])]
    const declared = (text: string): string[] => text.match(/\$\d+::\w+/g) ?? []

    for (const { text } of all) expect(declared(text).join()).toMatch(/^(\$\d::text,?)+$/)
    expect(declared(claimMessages(names, { token: uuid, queues: [] }).text).join(' ')).toBe(
      '$1::text $2::int $3::int $3::int $4::uuid',
    )
  })

  // Some clients cannot encode an array, and some encode it as JSON.
  test.each([0, 1, 2])('binds no array of JavaScript, for %i rows', (count) => {
    const fences = Array.from({ length: count }, () => fence)
    const failed = fences.map((own) => ({ ...own, delayMs: 5, leaseMs: 5, reason: 'r', error: 'e' }))
    const queues = fences.map(() => 'q')
    const all = [
      ...[deleteAcked, releaseLeases, holdsLeases].map((statement) => statement(names, fences)),
      ...[rescheduleRetried, buryDead, extendLeases].map((statement) => statement(names, failed)),
      lieDown(names, queues),
      countMessages(names, queues, 10),
      claimMessages(names, { token: uuid, queues: queues.map((queue) => wanted(queue)) }),
    ]

    for (const value of all.flatMap(({ values }) => values)) expect(typeof value).toMatch(/^(string|number)$/)
  })
})

describe('the claim', () => {
  const claim = (...queues: readonly ClaimedQueue[]): Statement<unknown> =>
    claimMessages(names, { token: uuid, queues })
  const { text } = claim(wanted('q'))
  const [, due = '', fresh = ''] = text.split(/\(select [df]\.spot|\) as u\n/)
  const count = (pattern: RegExp, within = text): number => within.match(pattern)?.length ?? 0

  test('has one text for any number of queues, and binds them, their number, the largest room and the token', () => {
    const queues = [wanted('a', 3), wanted('b', 9), wanted('c', 5)]

    expect(claim(...queues).text).toBe(text)
    expect(claim(...queues).values).toEqual([JSON.stringify(queues), 3, 9, uuid])
    expect(claim().values).toEqual(['[]', 0, 0, uuid])
  })

  test('steps over rows that are locked, in both lanes, and waits for none', () => {
    expect([count(/for update/g), count(/for update of m skip locked/g)]).toEqual([2, 2])
  })

  test('takes what is due by time, from the floor on, before what is fresh by place, above the cursor', () => {
    expect(due).toMatch(/m\.queue = w\.queue\s+and m\.due_at >= w\.due_from\s+and m\.due_at <= now\(\)/)
    expect(due).toMatch(/order by m\.due_at, m\.seq\s[\s\S]*union all\s+$/)
    expect(fresh).toContain('(m.queue, m.seq) > (w.queue, w.after)')
    expect(fresh).toContain('(m.queue, m.seq) <= (w.queue, 9223372036854775807)')
    expect(fresh).toMatch(/and m\.due_at is null\s[\s\S]*order by m\.queue, m\.seq\s/)
  })

  test('takes a lease that has ended for none, in both lanes', () => {
    for (const lane of [due, fresh])
      expect(count(/and \(m\.lease_token is null or m\.leased_until < now\(\)\)/g, lane)).toBe(1)
  })

  // The planner sees the outer limit and not the inner one: see the statement.
  test('has two limits in each lane, and one for both', () => {
    expect(count(/limit w\.room\s+for update of m skip locked\) as [df]\s+limit \$3::int\)/g)).toBe(2)
    expect(text).toMatch(/\) as u\s+limit w\.room\) as p/)
  })

  test('counts the delivery, lets the lease end by the clock of the database, and finds the rows by their place', () => {
    expect(text).toContain('deliveries = m.deliveries + 1')
    expect(text).toContain('leased_until = now() + make_interval(secs => w."leaseMs" / 1000)')
    expect(text).toMatch(/where m\.ctid = any\(array\(select spot from picked\)\)\s+and m\.queue = w\.queue/)
  })

  test('tells its own xid, its snapshot, the sequence’s value and the next due time, but not what waits for ever', () => {
    expect(text).toContain('pg_current_xact_id()::text as own')
    expect(text).toContain('pg_current_snapshot()::text as snapshot')
    expect(text).toContain('from "public"."outbox_seq_seq" as s)::text as top')
    expect(text).toMatch(/and m\.due_at > now\(\)\s+and m\.due_at < 'infinity'[\s\S]*limit 1\) as nextdue/)
  })

  test('tells the lowest seq only when it sweeps, leased rows included', () => {
    const [, lowest = 'lease'] = text.match(/case when w\.sweep then([\s\S]*?)end as lowest/) ?? []

    expect(lowest).not.toContain('lease')
  })

  // A setting of the session or a parser of the client may alter any other type.
  test('gives every column of a message as text, the body in base64', () => {
    const [, columns = ''] = text.match(/select 'message', ([\s\S]*)\n {2}from claimed/) ?? []
    const written = columns.split(/,\n/).map((column) => column.trim())

    expect(written[0]).toBe('c.queue, null, null, null, null, null')
    for (const column of written.slice(1))
      expect(column).toMatch(/^(c\.key|encode\(c\.body, 'base64'\)|c\.\S+::text|\(extract\(.*\)::text)$/)
    expect(written).toHaveLength(11)
  })
})

describe('the settling statements', () => {
  test.each(settling('1'))('$name is fenced by the token and returns what it changed', ({ text }) => {
    expect(text).toMatch(/where m\.seq = s\.seq\s+and m\.lease_token = s\.token\s+returning /)
    expect(text).toMatch(/(returning m\.seq|\nselect (original_)?seq)::text as seq/)
  })

  test('wait for the disk; a claim and a renewal, which cost no more than a lease, do not', () => {
    for (const { text } of settling('1')) expect(text).not.toContain('synchronous_commit')
    for (const { text } of [claimMessages(names, { token: uuid, queues: [] }), extendLeases(names, [])]) {
      expect(text).toContain("select set_config('synchronous_commit', 'off', true)")
      // Nobody evaluates what nobody refers to.
      expect(text).toMatch(/from quick,\s/)
    }
  })

  test('take any number of rows as one text for each column, or one JSON text', () => {
    const other = { seq: '2', token: uuid.replace('1', '2') }
    const retried = [fence, other].map((own) => ({ ...own, delayMs: 5, error: 'a' }))
    const dead = [fence, other].map((own) => ({ ...own, reason: 'r', error: 'a' }))
    const renewed = [fence, other].map((own) => ({ ...own, leaseMs: 9 }))

    for (const statement of [deleteAcked, releaseLeases, holdsLeases]) {
      expect(statement(names, [fence, other]).values).toEqual(['{1,2}', `{${uuid},${other.token}}`])
      expect(statement(names, []).values).toEqual(['{}', '{}'])
    }
    expect(rescheduleRetried(names, retried).values).toEqual([JSON.stringify(retried)])
    expect(buryDead(names, dead).values).toEqual([JSON.stringify(dead)])
    expect(extendLeases(names, renewed).values).toEqual([JSON.stringify(renewed)])
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

  test('a release gives the lease and its delivery back, changes nothing else, and tells each queue once', () => {
    const { text } = releaseLeases(names, [])
    const [, set = ''] = text.match(/ set ([\s\S]*?) from unnest/) ?? []

    expect(set.replaceAll(/\s+/g, ' ').trim()).toBe(
      'lease_token = null, leased_until = null, deliveries = m.deliveries - 1',
    )
    expect(text).toMatch(
      /pg_notify\('postbox:public\.outbox', q\.queue\)\s+from \(select distinct queue from released\)/,
    )
    expect(text).toContain('pg_notification_queue_usage() < 0.5')
    // Nobody evaluates what nobody refers to.
    expect(text).toContain('(select count(*) from told)')
  })

  test('a burial moves the row with one statement, and counts the run that led to it', () => {
    const { text } = buryDead(names, [])
    const kept =
      'id, queue, key, timer_id, body, headers, deliveries, created_at, generation, failure_history'
    const changed = 'attempts, first_attempt_at, last_attempt_at, failure_reason, last_error'
    const steps = [
      'delete from "public"."outbox" as m',
      `insert into "public"."outbox_dead" (original_seq, ${kept}, ${changed})`,
      `select seq, ${kept}, attempts + 1, coalesce(first_attempt_at, now()), now(), reason, error`,
    ].map((step) => text.indexOf(step))

    expect(steps).not.toContain(-1)
    expect([...steps].sort((a, b) => a - b)).toEqual(steps)
  })
})

describe('the statements on leases', () => {
  const { text } = extendLeases(names, [])

  test('a renewal steps over locked rows: it must not wait for a handler’s transaction', () => {
    expect(text).toMatch(
      /on o\.seq = s\.seq\s+and o\.lease_token = s\.token\s+for update of o skip locked\)\)/,
    )
    expect(text).toMatch(/and m\.seq = w\.seq\s+returning m\.seq::text as seq$/)
  })

  test('a renewal changes nothing but the end, by the clock of the database', () => {
    expect(text).toContain(' set leased_until = now() + make_interval(secs => w."leaseMs" / 1000)\n  from ')
  })

  test('a look at what is still held asks by seq and token and locks nothing', () => {
    expect(holdsLeases(names, []).text).toMatch(/on m\.seq = s\.seq\s+and m\.lease_token = s\.token$/)
    expect(holdsLeases(names, []).text).not.toMatch(/for (update|share)|update |delete /)
  })
})

describe('the other statements', () => {
  // Everything as text: a setting of the session or a parser of the client may alter any other type.
  test('what waits is read as text, the body in base64', () => {
    const { text } = peekPending(names, { queue: null, limit: 10, mark: null })
    const columns = text.slice(text.indexOf('id::text as id')).split(/\n\s*from /)[0] ?? ''
    const written = columns.split(/,\n/).map((column) => column.trim())

    for (const column of written) {
      expect(column).toMatch(
        /^(queue|key|timer_id as timer|encode\(body, 'base64'\) as body|\S.*::text as [a-z]+)$/,
      )
    }
    expect(written).toHaveLength(13)
    expect(text.match(/\bbody\b/g)).toHaveLength(2)
  })

  test('counts go no further than their bound in any lane, lock nothing, and leave out what waits for ever', () => {
    const { text, values } = countMessages(names, ['a', 'b'], 10)

    expect(values).toEqual(['["a","b"]', 10])
    expect(text.match(/from "public"\."outbox" as m/g)).toHaveLength(3)
    expect(text.match(/order by m\.\w+, m\.seq\s+limit \$2::int\)/g)).toHaveLength(3)
    expect(text).toMatch(/m\.due_at > now\(\)\s+and m\.due_at < 'infinity'/)
    expect(text).not.toMatch(/for (update|share)/)
  })

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
