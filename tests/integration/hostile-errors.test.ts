import { constant, noRetry } from 'postbox'
import { describe, expect, test } from 'vitest'
import { useBench } from '../support/decisions-bench.ts'

const { outboxOf, messages, dead } = useBench()

function cyclic(): Error {
  const [one, two] = [new Error('one'), new Error('two')]
  one.cause = two
  two.cause = one
  return one
}

const unprintable = {
  toString(): string {
    throw new Error('do not print')
  },
}

const untouchable = new Proxy(
  {},
  {
    get() {
      throw new Error('do not touch')
    },
    has() {
      throw new Error('do not look')
    },
    getPrototypeOf() {
      throw new Error('do not ask')
    },
  },
)

const hostile: readonly (readonly [string, unknown])[] = [
  ['with NUL and half an emoji', new Error(`a\u0000b${'🚚'.slice(0, 1)}`)],
  ['of 10 MB', new Error('x'.repeat(10_000_000))],
  ['that is its own cause', cyclic()],
  ['that cannot be printed', unprintable],
  ['that cannot be touched', untouchable],
  ['without a prototype', Object.create(null)],
  ['that is a string', 'just text'],
  ['that is a number', 42],
  ['that is a symbol', Symbol('odd')],
  ['that is nothing', undefined],
  ['that is null', null],
]

describe.for([
  ['recorded with its retry', { retry: constant({ delayMs: 3_600_000 }) }, messages, 'retried'],
  ['recorded with its dead letter', { retry: noRetry() }, dead, 'dead'],
] as const)('an error is %s', ([, options, rows, kind]) => {
  test.for(hostile)('%s', async ([, thrown]) => {
    const outbox = outboxOf()
    outbox.subscribe('orders', () => Promise.reject(thrown), options)
    await outbox.publishNow('orders', 1)
    await using running = await outbox.start()
    const event = await outbox.told.first(kind)
    await running.stop()
    const [row] = await rows()

    expect(event.error).toBe(thrown)
    expect(row).toMatchObject({ attempts: 1 })
    const text = String(row?.['last_error'])
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(8_192)
    expect(text.length).toBeGreaterThan(0)
    expect(outbox.told.of('settle_failed')).toEqual([])
  })
})

describe('describeError', () => {
  const recorded = async (describeError: (error: unknown) => string | null) => {
    const outbox = outboxOf({ describeError })
    outbox.subscribe('orders', () => Promise.reject(new Error('card 4111')), { retry: noRetry() })
    await outbox.publishNow('orders', 1)
    await outbox.drain()
    const [row] = await dead()
    return { text: row?.['last_error'], told: outbox.told }
  }

  test('says what is recorded, cleaned and cut', async () => {
    const { text } = await recorded(() => `safe\u0000${'y'.repeat(20_000)}`)
    expect(String(text)).toMatch(/^safe\ufffdy+…$/)
    expect(Buffer.byteLength(String(text))).toBeLessThanOrEqual(8_192)
  })

  test('may record nothing', async () => {
    expect((await recorded(() => null)).text).toBeNull()
  })

  test('that is broken records nothing of the error, and is told of', async () => {
    const { text, told } = await recorded(() => {
      throw new Error('oops')
    })
    expect(text).not.toMatch(/4111/)
    expect(told.of('warning')).toMatchObject([{ code: 'describe_failed' }])
  })
})
