import { describe, expect, test } from 'vitest'
import { deliveredModes, draftWith, settling } from '../../../../tests/support/settling-statements.ts'
import type { Conflict } from '../core/message.ts'
import { buryDead } from './bury-dead.ts'
import { claimMessages } from './claim-messages.ts'
import { countDelivery } from './count-delivery.ts'
import { deleteAcked } from './delete-acked.ts'
import { deleteWithFollowOns } from './delete-with-follow-ons.ts'
import { extendLeases, holdsLeases } from './extend-leases.ts'
import { resolveNames } from './names.ts'
import { quarantineDead } from './quarantine-dead.ts'
import { releaseLeases } from './release-leases.ts'
import { rescheduleRetried } from './reschedule-retried.ts'
import { snoozeMessages } from './snooze-messages.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const uuid = '0190163d-8694-739b-9aea-966c26f8ad91'
const fence = { seq: '1', token: uuid }

describe('the settling statements', () => {
  test.each(settling(names, '1'))(
    '$name is fenced by the token and returns what it changed',
    ({ name, text }) => {
      const pairs =
        /where m\.seq = s\.seq\s+and m\.lease_token = s\.token\s+and m\.seq = any\(.*\$1::text.*\)\s+returning /
      const ofOneClaim =
        /where m\.seq = any\(\$1::text::bigint\[\]\)\s+and m\.lease_token = \$2::text::uuid\s+returning /
      expect(text).toMatch(name === 'delete_acked' ? ofOneClaim : pairs)
      expect(text).toMatch(/(returning m\.seq|\nselect (original_)?seq)::text as seq/)
    },
  )

  test('wait for the disk; a claim and a renewal, which cost no more than a lease, do not', () => {
    for (const { text } of settling(names, '1')) expect(text).not.toContain('synchronous_commit')
    for (const { text } of [claimMessages(names, { token: uuid, queues: [] }), extendLeases(names, [])]) {
      expect(text).toContain("select set_config('synchronous_commit', 'off', true)")
      // Nobody evaluates what nobody refers to.
      expect(text).toMatch(/from quick,\s/)
    }
  })

  test('the count of a suspect is fenced, says how many there are with it, and waits for no disk', () => {
    const { text, values } = countDelivery(names, { ...fence, deliveries: 4 })

    expect(text).toMatch(/set deliveries = \$3::int\s+from quick\s/)
    expect(text).toMatch(
      /where m\.seq = \$1::bigint\s+and m\.lease_token = \$2::uuid\s+returning m\.seq::text as seq/,
    )
    expect(text).toContain("select set_config('synchronous_commit', 'off', true)")
    expect(values).toEqual(['1', uuid, 4])
  })

  test('take any number of rows as one text for each column, or one JSON text', () => {
    const other = { seq: '2', token: uuid.replace('1', '2') }
    const before = { deliveriesBefore: 4 }
    const retried = [fence, other].map((own) => ({ ...own, ...before, delayMs: 5, error: 'a' }))
    const released = [fence, other].map((own) => ({ ...own, ...before }))
    const dead = [fence, other].map((own) => ({ ...own, reason: 'r', error: 'a', attempts: 3 }))
    const renewed = [fence, other].map((own) => ({ ...own, leaseMs: 9 }))

    for (const statement of [deleteAcked, holdsLeases]) {
      expect(statement(names, [fence, other]).values).toEqual(['{1,2}', `{${uuid},${other.token}}`])
      expect(statement(names, []).values).toEqual(['{}', '{}'])
    }
    expect(releaseLeases(names, released, true).values).toEqual([
      '{1,2}',
      `{${uuid},${other.token}}`,
      '{4,4}',
    ])
    for (const statement of [rescheduleRetried, snoozeMessages])
      expect(statement(names, retried, true).values).toEqual([JSON.stringify(retried)])
    for (const statement of [buryDead, quarantineDead])
      expect(statement(names, dead).values).toEqual([JSON.stringify(dead)])
    expect(extendLeases(names, renewed).values).toEqual([JSON.stringify(renewed)])
  })

  test.each(deliveredModes)('a delete names the token once where all have the same (%s)', (delivered) => {
    const together = deleteAcked(names, [fence, { ...fence, seq: '2' }], { delivered })
    const mixed = deleteAcked(names, [fence, { seq: '2', token: uuid.replace('1', '2') }], { delivered })

    expect(together.values).toEqual(['{1,2}', uuid])
    expect(together.text).toMatch(/\s+and m\.lease_token = \$2::text::uuid\s+returning /)
    expect(mixed.text).toMatch(/where m\.seq = s\.seq\s+and m\.lease_token = s\.token\s+and m\.seq = any/)
  })

  test('an error that needs escapes in JSON comes back as it was', () => {
    const error = `"\\\n\u2028😀'{}`
    const [value] = rescheduleRetried(names, [{ ...fence, delayMs: 5, error }], true).values

    expect(JSON.parse(value as string)).toEqual([{ ...fence, delayMs: 5, error }])
  })

  test('a reschedule gives the lease up, counts the attempt and adds the delay to the clock of the database', () => {
    const { text } = rescheduleRetried(names, [], false)

    expect(text).toContain('due_at = now() + make_interval(secs => s."delayMs" / 1000)')
    expect(text).toContain('attempts = m.attempts + 1')
    expect(text).toMatch(/lease_token = null,\s+leased_until = null/)
  })

  test('a release gives the lease and its delivery back, changes nothing else, and tells each queue once', () => {
    const { text } = releaseLeases(names, [], false)
    const [, set = ''] = text.match(/ set ([\s\S]*?) from unnest/) ?? []

    expect(set.replaceAll(/\s+/g, ' ').trim()).toBe(
      'lease_token = null, leased_until = null, deliveries = s.deliveries',
    )
    expect(text).toMatch(
      /pg_notify\('postbox:public\.outbox', q\.queue\)\s+from \(select distinct queue from released\)/,
    )
    expect(text).toContain('pg_notification_queue_usage() < 0.5')
    // Nobody evaluates what nobody refers to.
    expect(text).toContain('(select count(*) from told)')
  })

  test('a burial moves the row with one statement: what goes in is what came out', () => {
    const { text } = buryDead(names, [])
    const [, into, out] =
      text.match(/insert into "public"\."outbox_dead" \((.*)\)\n {2}select (.*)\n {4}from gone/) ?? []

    expect(text.indexOf('delete from "public"."outbox" as m')).toBeGreaterThan(-1)
    expect(into).toMatch(/^id, queue, key, /)
    expect(out).toBe(into)
  })
})

describe('a message that goes back to waiting', () => {
  const forms = (takeNames: boolean) => [
    rescheduleRetried(names, [], takeNames),
    snoozeMessages(names, [], takeNames),
    releaseLeases(names, [], takeNames),
  ]

  test.each(forms(true))('takes its timer’s name back, and becomes impatient before ($name)', ({ text }) => {
    expect(text).toMatch(
      /^\s*with patience as materialized \(\s+select set_config\('lock_timeout', '100ms', true\)\s+\), /,
    )
    expect(text).toContain('(timer_id, fired_timer_id) = (')
    // Nobody evaluates what nobody refers to.
    expect(text).toMatch(/\n {4}from patience, (jsonb_to_recordset|unnest)/)
  })

  // An index-only look-up for each row; an `exists` may be hashed, from all timers that there are.
  test.each(forms(true))(
    'looks for another of its name by a query that cannot be hashed ($name)',
    ({ text }) => {
      expect(text).not.toMatch(/exists|\bin \(/)
    },
  )

  test.each(forms(false))('without its name is as patient as the connection ($name)', ({ text }) => {
    expect(text).not.toMatch(/patience|lock_timeout|timer_id/)
  })
})

describe('the delete that publishes', () => {
  const draft = draftWith(uuid)
  const textFor = (...conflicts: readonly Conflict[]): string => {
    const settled = conflicts.map((conflict) => ({ ...fence, followOns: [{ ...draft, conflict }] }))
    return deleteWithFollowOns(names, { settled, wake: 'poll' }).text
  }

  test('has the strongest conflict clause that a draft asks for, and none without a timer', () => {
    expect([textFor('none'), textFor()].some((text) => text.includes('on conflict'))).toBe(false)
    expect(textFor('none', 'keep', 'none')).toMatch(/failed_at is null do nothing\n/)
    expect(textFor('keep', 'replace', 'none')).toMatch(/failed_at is null do update\s/)
  })

  test('is impatient where a timer is at stake, and only there', () => {
    expect(textFor('none')).not.toContain('patience')
    for (const conflict of ['keep', 'replace'] as const) {
      expect(textFor('none', conflict)).toMatch(/^\s*with patience as materialized/)
      expect(textFor('none', conflict)).toMatch(/using patience, unnest/)
    }
  })

  test('binds fences, and the drafts with the message that each follows', () => {
    const { values } = deleteWithFollowOns(names, {
      settled: [
        { ...fence, followOns: [draft, { ...draft, queue: 'mails', conflict: 'none' }] },
        { seq: '2', token: uuid, followOns: [] },
      ],
      wake: 'poll',
    })

    expect(values.slice(0, 2)).toEqual(['{1,2}', `{${uuid},${uuid}}`])
    expect(JSON.parse(values[2] as string)).toMatchObject([
      { cause: '1', queue: uuid, conflict: 'keep', id: uuid, timer: uuid },
      { cause: '1', queue: 'mails', conflict: 'none' },
    ])
  })
})

describe('the statements on leases', () => {
  const { text } = extendLeases(names, [])

  test('a renewal steps over locked rows: it must not wait for a handler’s transaction', () => {
    expect(text).toMatch(
      /on m\.seq = s\.seq\s+and m\.lease_token = s\.token\s+and m\.seq = any\(.*\)\s+for update of m skip locked\)\)/,
    )
    expect(text).toMatch(/and m\.seq = w\.seq\s+and m\.seq = any\(.*\)\s+returning m\.seq::text as seq$/)
  })

  test('a renewal changes nothing but the end, by the clock of the database', () => {
    expect(text).toContain(' set leased_until = now() + make_interval(secs => w."leaseMs" / 1000)\n  from ')
  })

  test('a look at what is still held asks by seq and token and locks nothing', () => {
    expect(holdsLeases(names, []).text).toMatch(
      /on m\.seq = s\.seq\s+and m\.lease_token = s\.token\s+and m\.seq = any\(.*\)$/,
    )
    expect(holdsLeases(names, []).text).not.toMatch(/for (update|share)|update |delete /)
  })
})
