import { describe, expect, test } from 'vitest'
import { resolveOutboxOptions } from './core/outbox-options.ts'
import { defineSubscriber } from './define-subscriber.ts'
import type { Registry } from './runtime/runner.ts'
import { type SubscribeArguments, subscribe, subscribeBatch } from './subscribe.ts'

const queues = { orders: {}, emails: {}, parcels: {} }

/** An outbox that runs: what it is told of is what it would serve. */
function subscribing() {
  const told: unknown[] = []
  const registry: Registry = { subscriptions: [], onAdded: (added) => told.push(added) }
  const settings = resolveOutboxOptions({ queues, defaults: { concurrency: 3 } })
  const outbox = { settings, registry }
  return {
    told,
    registry,
    settings,
    subscribe: (...given: SubscribeArguments) => subscribe(outbox, given),
    subscribeBatch: (...given: Parameters<typeof subscribeBatch>[1]) => subscribeBatch(outbox, given),
  }
}

const ship = (): void => {}
// Made here, it would take the name of its variable.
const unnamed = (): (() => void) => () => {}
const shipping = defineSubscriber(queues, 'orders', ship)
const mailing = defineSubscriber(queues, ['emails', 'parcels'], unnamed(), { name: 'mail' })

describe('subscribe', () => {
  test('registers a frozen subscription with the defaults of its outbox, and tells of it', () => {
    const { registry, settings, told, subscribe } = subscribing()
    subscribe('orders', ship, { leaseMs: 5_000 })

    expect(registry.subscriptions).toEqual([
      {
        queues: ['orders'],
        name: 'ship',
        run: { kind: 'each', handler: ship },
        settings: { ...settings.defaults, leaseMs: 5_000 },
        rules: settings,
      },
    ])
    expect(told).toEqual(registry.subscriptions)
    expect(told.every(Object.isFrozen)).toBe(true)
  })

  test('is called by its option, else like its function, else like its queues', () => {
    const { registry, subscribe } = subscribing()
    subscribe('orders', ship, { name: 'shipping' })
    subscribe(['emails', 'parcels'], unnamed())

    expect(registry.subscriptions.map(({ name }) => name)).toEqual(['shipping', 'emails+parcels'])
  })

  test('one handler may have several queues', () => {
    const { registry, subscribe } = subscribing()
    subscribe(['orders', 'emails'], ship)

    expect(registry.subscriptions.map((subscription) => subscription.queues)).toEqual([['orders', 'emails']])
  })

  test('a list of queues that the caller changes afterwards changes nothing', () => {
    const { registry, subscribe } = subscribing()
    const listed = ['orders']
    subscribe(listed, ship)
    listed.push('emails')

    expect(registry.subscriptions[0]?.queues).toEqual(['orders'])
  })

  test('takes a subscriber, or a list of them', () => {
    const { registry, subscribe } = subscribing()
    subscribe(shipping)
    subscribe([mailing])

    expect(registry.subscriptions.map(({ name, queues }) => [name, ...queues])).toEqual([
      ['ship', 'orders'],
      ['mail', 'emails', 'parcels'],
    ])
  })

  test.each<[string, SubscribeArguments, string, RegExp]>([
    ['no queue', [undefined, ship], 'OUTBOX_INVALID_QUEUE', /`undefined`/],
    ['an unknown queue', ['ordesr', ship], 'OUTBOX_UNKNOWN_QUEUE', /did you mean "orders"/],
    [
      'an unknown queue in a list',
      [['orders', 'email'], ship],
      'OUTBOX_UNKNOWN_QUEUE',
      /did you mean "emails"/,
    ],
    ['an empty list', [[], ship], 'OUTBOX_INVALID_OPTION', /a queue or several, got `\[\]`/],
    ['an empty list of subscribers', [[]], 'OUTBOX_INVALID_OPTION', /a queue or several/],
    ['a list with a hole', [new Array(1), ship], 'OUTBOX_INVALID_QUEUE', /`undefined`/],
    ['a queue twice', [['orders', 'emails', 'orders'], ship], 'OUTBOX_INVALID_OPTION', /"orders".* again/],
    [
      'no handler',
      ['orders'],
      'OUTBOX_INVALID_OPTION',
      /expected `handler` to be a function, got `undefined`/,
    ],
    ['options for a handler', ['orders', { concurrency: 3 }], 'OUTBOX_INVALID_OPTION', /expected `handler`/],
    [
      'wrong options',
      ['orders', ship, { ack: 'no' }],
      'OUTBOX_INVALID_OPTION',
      /^subscriber of "orders": expected `ack`/,
    ],
    [
      'wrong options for several queues',
      [['orders', 'emails'], ship, { ack: 'no' }],
      'OUTBOX_INVALID_OPTION',
      /^subscriber of "orders", "emails": expected `ack`/,
    ],
    [
      'a subscriber and a handler',
      [shipping, ship],
      'OUTBOX_INVALID_OPTION',
      /a subscriber alone.*, got `ship` \(function\) beside it/,
    ],
    [
      'a subscriber and options',
      [shipping, { concurrency: 3 }],
      'OUTBOX_INVALID_OPTION',
      /its options to defineSubscriber, got `\{"concurrency":3\}` \(object\) beside it/,
    ],
    [
      'a subscriber, nothing, and options',
      [shipping, undefined, { ack: 'auto' }],
      'OUTBOX_INVALID_OPTION',
      /its options to defineSubscriber, got `\{"ack":"auto"\}` \(object\) beside it/,
    ],
    ['a subscriber that is none', [{}], 'OUTBOX_INVALID_QUEUE', /`undefined`/],
    [
      'a queue among subscribers',
      [[shipping, 'emails']],
      'OUTBOX_INVALID_OPTION',
      /a subscriber alone.*"emails"/,
    ],
    ['the same subscriber twice', [[mailing, mailing]], 'OUTBOX_DUPLICATE_SUBSCRIBER', /"emails"/],
    ['a subscriber of a taken queue', [[mailing, shipping]], 'OUTBOX_DUPLICATE_SUBSCRIBER', /"orders"/],
    ['a taken queue', ['orders', ship], 'OUTBOX_DUPLICATE_SUBSCRIBER', /"orders"/],
    ['a list with a taken queue', [['emails', 'orders'], ship], 'OUTBOX_DUPLICATE_SUBSCRIBER', /"orders"/],
  ])('refuses %s, and registers nothing', (...[, given, code, shows]) => {
    const { registry, told, subscribe } = subscribing()
    if (code === 'OUTBOX_DUPLICATE_SUBSCRIBER') subscribe('orders', ship)
    const before = told.length
    const act = (): void => subscribe(...given)

    expect(act).toThrow(expect.objectContaining({ code, message: expect.stringMatching(shows) }))
    expect(registry.subscriptions).toHaveLength(before)
    expect(told).toHaveLength(before)
  })

  test('of a list nothing is registered when its last is refused', () => {
    const { registry, subscribe } = subscribing()
    const foreign = defineSubscriber({ bills: {} }, 'bills', ship)

    expect(() => subscribe([shipping, mailing, foreign])).toThrow(/no queue is named `"bills"`/)
    expect(registry.subscriptions).toEqual([])
  })
})

describe('subscribeBatch', () => {
  test('registers a handler of many', () => {
    const { registry, settings, told, subscribeBatch } = subscribing()
    subscribeBatch('orders', ship, { size: 5, maxWaitMs: 0, concurrency: 1 })

    expect(registry.subscriptions).toEqual([
      {
        queues: ['orders'],
        name: 'ship',
        run: { kind: 'batch', handler: ship, size: 5, maxWaitMs: 0 },
        settings: { ...settings.defaults, concurrency: 1 },
        rules: settings,
      },
    ])
    expect(told).toEqual(registry.subscriptions)
  })

  test('says whose options are wrong', () => {
    const { subscribeBatch } = subscribing()

    expect(() => subscribeBatch('orders', ship, { size: 0 })).toThrow(
      /^subscriber of "orders": expected `size` to be a whole number from 1 to 10000, got `0`/,
    )
  })

  test.each<[string, readonly [unknown, unknown, unknown?], string]>([
    ['several queues', [['orders'], ship], 'OUTBOX_INVALID_QUEUE'],
    ['a subscriber', [shipping, undefined], 'OUTBOX_INVALID_QUEUE'],
    ['an unknown queue', ['ordesr', ship], 'OUTBOX_UNKNOWN_QUEUE'],
    ['no handler', ['orders', undefined], 'OUTBOX_INVALID_OPTION'],
    ['a size of none', ['orders', ship, { size: 0 }], 'OUTBOX_INVALID_OPTION'],
    ['a taken queue', ['emails', ship], 'OUTBOX_DUPLICATE_SUBSCRIBER'],
  ])('refuses %s', (_title, given, code) => {
    const { registry, subscribe, subscribeBatch } = subscribing()
    subscribe('emails', ship)

    expect(() => subscribeBatch(...given)).toThrow(expect.objectContaining({ code }))
    expect(registry.subscriptions).toHaveLength(1)
  })
})

describe('defineSubscriber', () => {
  test('gives something that nobody can change, whatever becomes of what was given', () => {
    const listed: ('orders' | 'emails')[] = ['orders']
    const options = { concurrency: 2 }
    const subscriber = defineSubscriber(queues, listed, ship, options)
    listed.push('emails')
    options.concurrency = 7

    expect(subscriber).toEqual({ queues: ['orders'], handler: ship, options: { concurrency: 2 } })
    expect([subscriber, subscriber.queues, subscriber.options].every(Object.isFrozen)).toBe(true)
  })

  test.each<[string, readonly [unknown, unknown, unknown?], string]>([
    ['an unknown queue', ['ordesr', ship], 'OUTBOX_UNKNOWN_QUEUE'],
    ['no queue', [[], ship], 'OUTBOX_INVALID_OPTION'],
    ['no handler', ['orders', undefined], 'OUTBOX_INVALID_OPTION'],
    ['wrong options', ['orders', ship, { concurency: 2 }], 'OUTBOX_INVALID_OPTION'],
  ])('refuses %s at once', (_title, [names, handler, options], code) => {
    const act = (): unknown => defineSubscriber(queues, names as never, handler as never, options as never)

    expect(act).toThrow(expect.objectContaining({ code }))
  })
})
