import { describe, expect, test } from 'vitest'
import {
  batch,
  each,
  leaseOf,
  leasesUpTo,
  subscriptionOf,
  toolsOf,
  unhandledWhile,
} from '../../../../tests/support/delivery-bench.ts'
import type { BatchContext, Context } from '../core/handler.ts'
import type { Message } from '../core/message.ts'
import type { Outcome } from '../core/outcome.ts'
import type { SubscribeOptions } from '../core/subscribe-options.ts'
import { commonContext, contextOfMany, contextOfOne, Member } from './context.ts'
import type { Held } from './held.ts'
import { LazyController } from './lazy-controller.ts'

const messageOf = ({ lease }: Held): Message =>
  Object.freeze({ ...lease, afterDead: null, correlationId: 'order-7', raw: lease.body, body: null })

function benchOf(helds: readonly Held[], options: SubscribeOptions = {}) {
  const bench = toolsOf()
  const subscription = subscriptionOf(helds.length === 1 ? each(() => {}) : batch(() => {}), options)
  const parts = { tools: bench.tools, subscription }
  const members = helds.map((held) => new Member(held, messageOf(held), parts))
  const controller = new LazyController()
  return { ...bench, members, parts, controller, common: commonContext(members, controller, parts) }
}

function contextOf(held: Held = leaseOf(), options: SubscribeOptions = {}) {
  const bench = benchOf([held], options)
  const member = bench.members[0] as Member
  return { ...bench, member, context: contextOfOne(member, bench.common, bench.parts) }
}

function batchContextOf(helds: readonly Held[]) {
  const bench = benchOf(helds)
  const context = contextOfMany(bench.members, bench.common, bench.parts)
  const messages = bench.members.map(({ message }) => message)
  const outcomes = () => bench.members.map(({ decision }) => decision.outcome)
  return { ...bench, context, messages, outcomes }
}

const tooLate = expect.objectContaining({ code: 'OUTBOX_DELIVERY_OVER' })

describe('the context of one message', () => {
  test.each<[keyof Context, unknown[], Outcome]>([
    ['ack', [], { kind: 'ack', followOns: [] }],
    ['retry', [{ afterMs: 5 }], { kind: 'retry', afterMs: 5, error: undefined }],
    ['reject', ['no'], { kind: 'reject', error: 'no', isSaid: true }],
    ['snooze', [7], { kind: 'snooze', delayMs: 7 }],
  ])('%s decides, also when it is taken out of the context', (name, given, outcome) => {
    const { context, member } = contextOf()
    const decide = context[name] as (...given: unknown[]) => void
    decide(...given)

    expect(member.decision.outcome).toEqual(outcome)
  })

  test('can be taken apart, and copied', () => {
    const { context, members } = contextOf()
    const { log } = { ...context }
    const { info } = log
    const { snooze } = context
    info('apart')
    snooze(3)

    expect(members[0]?.decision.outcome).toEqual({ kind: 'snooze', delayMs: 3 })
  })

  test('has the signal of its delivery', () => {
    const { context, controller } = contextOf()
    const { signal } = context

    expect(signal).toBe(controller.signal)
    expect(context.signal).toBe(signal)
  })

  test.each<[string, (context: Context) => Context]>([
    ['a copy of it', (context) => ({ ...context })],
    ['what is derived from it', (context) => Object.create(context)],
    ['a proxy for it', (context) => new Proxy(context, {})],
  ])('%s has its signal, too', (_, made) => {
    const { context, controller } = contextOf()

    expect(made(context).signal).toBe(controller.signal)
  })

  test.each<[string, (context: Context) => Context]>([
    ['it', (context) => context],
    ['a copy of it', (context) => ({ ...context })],
    ['what is derived from it', (context) => Object.create(context)],
  ])('%s can be given another signal, as by who wraps a handler', (_, made) => {
    const { context, controller } = contextOf()
    const { signal } = new AbortController()
    const given = Object.assign(made(context), { signal })

    expect([given.signal, Object.keys(given).includes('signal')]).toEqual([signal, true])
    expect(given === context || context.signal === controller.signal).toBe(true)
  })

  test.each(['debug', 'info', 'warn', 'error'] as const)(
    'log.%s writes with the name of the message',
    (level) => {
      const { context, logged } = contextOf(leaseOf({ seq: '7', attempt: 3, deliveries: 4 }))
      context.log[level]('shipped', { parcel: 12 })
      context.log[level]('done')

      const about = { handler: 'ship', queue: 'orders', id: 'id-7', attempt: 3 }
      expect(logged).toEqual([
        { level, message: 'shipped', fields: { ...about, parcel: 12 } },
        { level, message: 'done', fields: about },
      ])
    },
  )

  test('lease.extend renews its lease, and waits for that', async () => {
    const held = leaseOf()
    const { context, extended } = contextOf(held)
    await context.lease.extend()

    expect(extended).toEqual([[held]])
  })
})

describe('a follow-on message', () => {
  test('answers with its id once it is checked, and is kept for the end of the delivery', async () => {
    const { context, member } = contextOf()
    const { publish } = context
    const { id } = (await publish('mails', { n: 1 }, { key: 'k' })) ?? {}
    const drafts = await Promise.all(member.followOns)

    expect(drafts).toEqual([expect.objectContaining({ id, queue: 'mails', key: 'k' })])
    expect(id).toMatch(/^0{8}-/)
  })

  test('answers with null when a middleware kept it back: there is no message of that id', async () => {
    const { tools } = toolsOf({ middleware: [{ publish: async () => [null] }] })
    const parts = { tools, subscription: subscriptionOf(each(() => {})) }
    const member = new Member(leaseOf(), messageOf(leaseOf()), parts)

    await expect(member.publish({ queue: 'mails', body: 1, options: undefined })).resolves.toBeNull()
  })

  test.each<[boolean | string[], Record<string, string>]>([
    [false, {}],
    [true, { tenant: 'blue', other: 'x' }],
    [['Tenant'], { tenant: 'blue' }],
  ])(
    'propagateHeaders: %j decides which headers it inherits; the correlation id it always does',
    async (propagateHeaders, copied) => {
      const headers = { 'content-type': 'application/json', tenant: 'blue', other: 'x' }
      const { context, member } = contextOf(leaseOf({ headers }), { propagateHeaders })
      await context.publish('mails', 1)

      expect((await member.followOns[0])?.headers).toEqual({ ...copied, 'correlation-id': 'order-7' })
    },
  )

  test('one that is refused rejects, and is kept, too: whoever asks at the end hears of it', async () => {
    const { context, member } = contextOf()
    const answer = context.publish('mails', () => {})
    const refused = expect.objectContaining({ code: 'OUTBOX_INVALID_BODY' })

    await expect(answer).rejects.toEqual(refused)
    await expect(Promise.allSettled(member.followOns)).resolves.toEqual([
      { status: 'rejected', reason: refused },
    ])
  })

  test('all are checked when none is under way any more, whether it was refused or not', async () => {
    const { context, member } = contextOf()
    const seen = [member.isChecked]
    const [good, refused] = [context.publish('mails', 1), context.publish('mails', () => {})]
    seen.push(member.isChecked)
    await Promise.allSettled([good, refused])
    seen.push(member.isChecked)
    void context.publish('mails', 2)
    seen.push(member.isChecked)

    expect(seen).toEqual([true, false, true, false])
  })

  test('one that comes too late is not waited for', async () => {
    const { context, member } = contextOf()
    member.close()
    void context.publish('mails', 1)

    expect(member.isChecked).toBe(true)
  })

  test('after the end of the delivery it is refused, and not kept', async () => {
    const { context, member } = contextOf(leaseOf({ seq: '7' }))
    member.close()
    const late = context.publish('mails', 1)

    await expect(late).rejects.toEqual(tooLate)
    await expect(late).rejects.toThrow('after the handler of message id-7 of "orders" had ended')
    expect(member.followOns).toEqual([])
  })

  test('one that is refused and that nobody waits for is no unhandled rejection', async () => {
    const unhandled = await unhandledWhile(async () => {
      void contextOf().context.publish('mails', () => {})
    })

    expect(unhandled).toEqual([])
  })

  test('one that comes too late and that nobody waits for is no unhandled rejection, but is logged', async () => {
    const { context, member, logged } = contextOf(leaseOf({ seq: '7' }))
    const unhandled = await unhandledWhile(async () => {
      member.close()
      void context.publish('mails', 1)
    })

    expect(unhandled).toEqual([])
    expect(logged).toEqual([
      {
        level: 'error',
        message: expect.stringContaining('after the handler of message id-7 of "orders" had ended'),
        fields: { handler: 'ship', queue: 'orders', id: 'id-7', attempt: 1 },
        error: tooLate,
      },
    ])
  })

  test('decisions after the end of the delivery change nothing', () => {
    const { context, member } = contextOf()
    member.close()
    context.ack()
    context.snooze(5)

    expect(member.decision.outcome).toBeNull()
  })
})

describe('the context of a batch', () => {
  test('each decision is about its message, and no other', () => {
    const { context, messages, outcomes } = batchContextOf(leasesUpTo(5))
    const [first, second, third, fourth] = messages as [Message, Message, Message, Message]
    context.snooze(third, 7)
    context.ack(first)
    context.reject(fourth, 'no')
    context.retry(second, { afterMs: 5 })

    expect(outcomes()).toEqual([
      { kind: 'ack', followOns: [] },
      { kind: 'retry', afterMs: 5, error: undefined },
      { kind: 'snooze', delayMs: 7 },
      { kind: 'reject', error: 'no', isSaid: true },
      null,
    ])
  })

  test('for each message the first decision counts', () => {
    const { context, messages, outcomes } = batchContextOf(leasesUpTo(2))
    context.snooze(messages[0]!, 7)
    context.ack(messages[1]!)
    context.ack(messages[0]!)

    expect(outcomes().map((outcome) => outcome?.kind)).toEqual(['snooze', 'ack'])
  })

  test.each<[string, (context: BatchContext, message: Message) => unknown]>([
    ['ack', (context, message) => context.ack(message)],
    ['retry', (context, message) => context.retry(message)],
    ['reject', (context, message) => context.reject(message)],
    ['snooze', (context, message) => context.snooze(message, 1)],
    ['publish', (context, message) => context.publish(message, { queue: 'mails', body: 1 })],
  ])('%s of a message that is not in it is refused', async (_, decide) => {
    const { context, members, outcomes } = batchContextOf(leasesUpTo(2))
    const foreign = [messageOf(leaseOf({ seq: '3' })), { ...members[0]!.message }, undefined as never]

    for (const message of foreign) {
      await expect(async () => decide(context, message)).rejects.toMatchObject({
        code: 'OUTBOX_INVALID_OPTION',
        message: expect.stringContaining('expected one of the messages of this batch, got `'),
      })
    }
    expect([outcomes(), members.flatMap(({ followOns }) => followOns)]).toEqual([[null, null], []])
  })

  test('a follow-on of a message that is not in it throws at once, so that it cannot go unnoticed', () => {
    const { context } = batchContextOf(leasesUpTo(2))
    const foreign = messageOf(leaseOf({ seq: '3' }))

    expect(() => context.publish(foreign, { queue: 'mails', body: 1 })).toThrow(
      'one of the messages of this batch',
    )
  })

  test('a follow-on message belongs to the message that it is published for', async () => {
    const { context, members, messages } = batchContextOf(leasesUpTo(2))
    const options = { key: 'k' }
    const { id } = (await context.publish(messages[1]!, { queue: 'mails', body: 1, options })) ?? {}
    const drafts = await Promise.all(members.map(({ followOns }) => Promise.all(followOns)))

    expect(drafts).toEqual([[], [expect.objectContaining({ id, queue: 'mails', key: 'k' })]])
  })

  test('a follow-on that is refused and that nobody waits for is no unhandled rejection', async () => {
    const { context, messages } = batchContextOf(leasesUpTo(2))
    const unhandled = await unhandledWhile(async () => {
      void context.publish(messages[0]!, { queue: 'mails', body: () => {} })
    })

    expect(unhandled).toEqual([])
  })

  test('lease.extend renews all of its leases at once', async () => {
    const helds = leasesUpTo(3)
    const { context, extended } = batchContextOf(helds)
    await context.lease.extend()

    expect(extended).toEqual([helds])
  })

  test('a follow-on with a member that it does not have is refused, at once, and nothing is published', () => {
    const { context, members, messages } = batchContextOf(leasesUpTo(2))
    const misspelt = { queue: 'mails', body: 1, option: { delayMs: 5 } }

    expect(() => context.publish(messages[0]!, misspelt)).toThrow(
      expect.objectContaining({
        code: 'OUTBOX_INVALID_OPTION',
        message: expect.stringMatching(/`option`.*did you mean `options`\?/),
      }),
    )
    expect(members.flatMap(({ followOns }) => followOns)).toEqual([])
  })

  /** A context whose leases cannot be renewed. */
  function losing(helds: readonly Held[], error: Error) {
    const tools = { ...toolsOf().tools, extend: () => Promise.reject(error) }
    const parts = { tools, subscription: subscriptionOf(batch(() => {})) }
    const members = helds.map((held) => new Member(held, messageOf(held), parts))
    return commonContext(members, new LazyController(), parts).lease
  }

  test('lease.extend rejects when one of them is lost', async () => {
    const lost = new Error('lost')

    await expect(losing(leasesUpTo(2), lost).extend()).rejects.toBe(lost)
  })

  test('lease.extend that rejects and that nobody waits for is no unhandled rejection', async () => {
    const unhandled = await unhandledWhile(async () => {
      void losing(leasesUpTo(2), new Error('lost')).extend()
    })

    expect(unhandled).toEqual([])
  })

  test('its log says how many messages there are; with one alone, which', () => {
    const [many, alone] = [benchOf(leasesUpTo(3)), benchOf([leaseOf({ seq: '4', attempt: 2 })])]
    many.common.log.info('hello')
    alone.common.log.info('hello')

    expect([...many.logged, ...alone.logged].map(({ fields }) => fields)).toEqual([
      { handler: 'ship', queue: 'orders', messages: 3 },
      { handler: 'ship', queue: 'orders', id: 'id-4', attempt: 2 },
    ])
  })
})
