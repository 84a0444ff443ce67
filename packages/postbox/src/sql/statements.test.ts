import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { conflicts, draftWith, settling, wakes } from '../../../../tests/support/settling-statements.ts'
import { cancelTimer } from './cancel-timer.ts'
import { claimFresh } from './claim-fresh.ts'
import { type ClaimedQueue, claimMessages } from './claim-messages.ts'
import { countMessages } from './count-messages.ts'
import { extendLeases, holdsLeases } from './extend-leases.ts'
import { fenceTransaction } from './fence-transaction.ts'
import { findBuried } from './find-buried.ts'
import { insertMessage } from './insert-message.ts'
import { insertMessages } from './insert-messages.ts'
import { beginReadCommitted, commit, readIsolation, rollback, setReadCommitted } from './isolation.ts'
import { markTransaction, readMark } from './mark-transaction.ts'
import { resolveNames } from './names.ts'
import { pauseQueue, resumeQueue } from './pause-queue.ts'
import { peekPending } from './peek-pending.ts'
import { plannedAnew } from './planned-anew.ts'
import { readPauses } from './read-pauses.ts'
import { releaseLeases } from './release-leases.ts'
import { lockForMigrating, readAppliedSteps, readSchemaState } from './schema-state.ts'
import { checkClear, getUp, lieDown, sendWord } from './sleep.ts'
import type { Statement } from './statement.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const quoted = resolveNames({ schema: 'My "Schema', table: 'Out\\box' })
const uuid = '0190163d-8694-739b-9aea-966c26f8ad91'
const hostile = `x'); drop table outbox; -- " \\ $1`
// Half a character, too. Not 'binary' of fast-check: it takes seconds to begin.
const anyUnit = fc.nat(0xffff).map((code) => String.fromCharCode(code))

const anyQueue = { leaseMs: 1_000, after: '7', dueFromMs: null, sweep: false }
const wanted = (queue: string, room = 5): ClaimedQueue => ({ queue, room, ...anyQueue })

const sleeping = (text: string, given = names): Statement<unknown>[] =>
  [lieDown, checkClear, getUp].map((statement) => statement(given, [text]))

/** Every statement on messages that a value of a caller reaches. */
function carrying(text: string, given = names): Statement<unknown>[] {
  const own = draftWith(text)
  const inserts = wakes.flatMap((wake) =>
    conflicts.flatMap((conflict) => [
      insertMessage(given, { ...own, conflict }, { wake, mark: text }),
      insertMessages(given, { queue: text, drafts: [own, own], conflict }, { wake, mark: text }),
    ]),
  )
  return [
    ...inserts,
    ...settling(given, text),
    claimMessages(given, { token: text, queues: [wanted(text)] }),
    claimFresh(given, { token: text, queue: text, room: 1, leaseMs: 1, after: text }),
    cancelTimer(given, { queue: text, timerId: text, mark: text }),
    peekPending(given, { queue: text, limit: 10, mark: text }),
    extendLeases(given, [{ seq: text, token: text, leaseMs: 1 }]),
    holdsLeases(given, [{ seq: text, token: text }]),
    fenceTransaction(given, [{ seq: text, token: text }]),
    findBuried(given, [{ seq: text, id: text, deliveries: 1 }], 'moved'),
    findBuried(given, [{ seq: text, id: text, deliveries: 1 }], 'quarantined'),
    countMessages(given, [text], 10),
    ...wakes.flatMap((wake) =>
      [pauseQueue, resumeQueue].map((change) => change(given, { queue: text, by: text, wake })),
    ),
    readPauses(given, [text]),
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
    for (const { text } of carrying('orders', quoted))
      expect(text).toMatch(/"My ""Schema"\."Out\\box(_dead|_queues)?"/)
  })

  test('names the channel of a schema with a backslash as an escaped literal', () => {
    const { text } = insertMessage(quoted, draftWith(uuid), { wake: 'always', mark: null })

    expect(text).toContain(`pg_notify( E'postbox:My "Schema.Out\\\\box', $2::text)`)
    for (const { text } of [...sleeping('orders', quoted), releaseLeases(quoted, [], false)])
      expect(text).toContain(` E'postbox:My "Schema.Out\\\\box`)
  })

  // A client that knows the type of a parameter encodes for it: text is what it was given.
  test('declares what it is given as text before anything is made of it, numbers aside', () => {
    const asking = [extendLeases(names, []), holdsLeases(names, []), findBuried(names, [], 'moved')]
    const all = [...settling(names, '1'), ...sleeping('q'), ...asking]
    const declared = (text: string): string[] => text.match(/\$\d+::\w+/g) ?? []

    for (const { text } of all) expect(declared(text).join()).toMatch(/^(\$\d::text,?)+$/)
    expect(declared(claimMessages(names, { token: uuid, queues: [] }).text).join(' ')).toBe(
      '$1::text $2::int $3::int $3::int $4::uuid',
    )
  })

  // Some clients cannot encode an array, and some encode it as JSON.
  test.each([0, 1, 2])('binds no array of JavaScript, for %i rows', (count) => {
    const leases = Array.from({ length: count }, () => ({ seq: '1', token: uuid, leaseMs: 5 }))
    const queues = leases.map(() => 'q')
    const all = [
      ...settling(names, '1', count),
      extendLeases(names, leases),
      holdsLeases(names, leases),
      findBuried(
        names,
        leases.map(() => ({ seq: '1', id: uuid, deliveries: 1 })),
        'quarantined',
      ),
      lieDown(names, queues),
      countMessages(names, queues, 10),
      claimMessages(names, { token: uuid, queues: queues.map((queue) => wanted(queue)) }),
    ]

    for (const value of all.flatMap(({ values }) => values)) expect(typeof value).toMatch(/^(string|number)$/)
  })
})

describe('the least claim', () => {
  const asked = { token: uuid, queue: 'q', room: 3, leaseMs: 1_000, after: '7' }
  const { text, values, keptText } = claimFresh(names, asked)

  test('binds what it asks for, and a generation only where there is one', () => {
    const ofThree = claimFresh(names, { ...asked, generation: 3 })

    expect(values).toEqual(['q', '7', 3, uuid, 1_000])
    expect(ofThree.values).toEqual([...values, 3])
    expect(ofThree.text).toContain('(m.generation is null or m.generation <= $6::bigint)')
    expect(text.replace('m.generation::text as generation', '')).not.toContain('generation')
  })

  test('is planned anew where it is kept', () => {
    expect(keptText).toContain(plannedAnew('$3::int'))
    expect(text).not.toContain(plannedAnew('$3::int'))
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

  test('of a generation binds it, and asks for it in both lanes, for the lowest seq and for the next due time', () => {
    const ofThree = claimMessages(names, { token: uuid, queues: [wanted('q')], generation: 3 })

    expect(ofThree.values).toEqual([...claim(wanted('q')).values, 3])
    expect(count(/m\.generation is null or m\.generation <= \$5::bigint/g, ofThree.text)).toBe(4)
    expect(count(/m\.generation/g)).toBe(0)
    expect(claimMessages(names, { token: uuid, queues: [], generation: 0 }).text).toBe(ofThree.text)
    expect(claimMessages(names, { token: uuid, queues: [], generation: null }).text).toBe(text)
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

  test('counts the delivery, but of a suspect, which it tells; lets the lease end by the clock of the database, and finds the rows by their place', () => {
    expect(text).toContain(
      'deliveries = m.deliveries + case when m.deliveries > m.attempts then 0 else 1 end',
    )
    expect(count(/case when m\.deliveries > m\.attempts then m\.seq end as suspect/g)).toBe(2)
    expect(text).toContain('leased_until = now() + make_interval(secs => w."leaseMs" / 1000)')
    expect(text).toMatch(/where m\.ctid = any\(array\(select spot from picked\)\)\s+and m\.queue = w\.queue/)
  })

  test('takes the name off a timer, and remembers it', () => {
    expect(text).toContain(
      'timer_id = null,\n         fired_timer_id = coalesce(m.timer_id, m.fired_timer_id)',
    )
  })

  test('tells its own xid, its snapshot, the sequence’s value and the next due time, but not what waits for ever', () => {
    expect(text).toContain('pg_current_xact_id()::text as own')
    expect(text).toContain('pg_current_snapshot()::text as snapshot')
    expect(text).toContain('from "public"."outbox_seq_seq" as s)::text as top')
    expect(text).toMatch(
      /and m\.due_at > now\(\)\s+and m\.due_at < 'infinity'[\s\S]*limit 1\)\s+end as nextdue/,
    )
  })

  test('tells the lowest seq only when it sweeps, leased rows included', () => {
    const [, lowest = 'lease'] = text.match(/case when w\.sweep then([\s\S]*?)end as lowest/) ?? []

    expect(lowest).not.toContain('lease')
  })

  // A setting of the session or a parser of the client may alter any other type.
  test('gives every column of a message as text, the body in base64', () => {
    const [, columns = ''] = text.match(/select 'message', ([\s\S]*)\n {2}from claimed/) ?? []
    const written = columns.split(/,\n/).map((column) => column.trim())

    expect(written[0]).toBe('c.queue, null, null, null, null, null, null, null')
    for (const column of written.slice(1))
      expect(column).toMatch(
        /^(coalesce\(c\.key, c\.later_key\)|c\.fired_timer_id|encode\(c\.body, 'base64'\)|c\.\S+::text|\(extract\(.*\)::text)$/,
      )
    expect(written).toHaveLength(14)
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
        /^(queue|coalesce\(key, later_key\) as key|coalesce\(timer_id, fired_timer_id\) as timer|encode\(body, 'base64'\) as body|\S.*::text as [a-z]+)$/,
      )
    }
    expect(written).toHaveLength(13)
    expect(text.match(/\bbody\b/g)).toHaveLength(2)
  })

  test('counts go no further than their bound in any lane, lock nothing, and leave out what waits for ever', () => {
    const { text, values } = countMessages(names, ['a', 'b'], 10)

    expect(values).toEqual(['["a","b"]', 10])
    expect(text.match(/from "public"\."outbox" as m/g)).toHaveLength(4)
    expect(text.match(/order by m\.\w+, m\.(key, m\.)?seq\s+limit \$2::int\)/g)).toHaveLength(4)
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

  // A message that is published anew, or replayed, has another seq: it is not the one that was buried.
  test.each([
    [
      'moved',
      /join "public"\."outbox_dead" as d\s+on d\.id = s\.id\s+and d\.original_seq = s\.seq\s+and d\.deliveries = s\.deliveries$/,
    ],
    [
      'quarantined',
      /join "public"\."outbox" as d\s+on d\.id = s\.id\s+and d\.seq = s\.seq\s+and d\.deliveries = s\.deliveries\s+and d\.failed_at is not null$/,
    ],
  ] as const)(
    'what was buried is told by id, place and delivery, as text, without a lock (%s)',
    (place, joined) => {
      const leases = [{ seq: '7', id: uuid, deliveries: 3, token: 'not sent', body: 'not sent' }]
      const { text, values } = findBuried(names, leases, place)

      expect(text).toMatch(joined)
      expect(text).toMatch(/^\s*select s\.seq::text as seq\s/)
      expect(text).not.toMatch(/for (update|share)/)
      expect(values).toEqual([JSON.stringify([{ seq: '7', id: uuid, deliveries: 3 }])])
    },
  )

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
