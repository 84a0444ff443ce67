import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { classifyError } from './classify.ts'
import { LeaseLostError } from './errors.ts'
import { runtimeError } from './runtime-errors.ts'
import type { SubscribeSettings } from './subscribe-options.ts'
import { TerminalError } from './terminal-error.ts'

type Rules = Pick<SubscribeSettings, 'classify' | 'terminalErrors'>

const none: Rules = { classify: null, terminalErrors: [] }
const terminal = { verdict: 'terminal' }
const transient = { verdict: 'transient' }

class Refused extends Error {}

const failed = (code: string): Error => Object.assign(new Error('failed'), { code })
const caused = (cause: unknown): Error => new Error('outer', { cause })

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable(new Error('gone'), {})
  revoke()
  return proxy
}

function selfCaused(): Error {
  const error = new Error('ouroboros')
  error.cause = error
  return error
}

describe('classifyError without rules of the user’s', () => {
  test.each([
    ['a TerminalError', new TerminalError('no')],
    ['one of another copy of the package', { [Symbol.for('postbox.terminal')]: true }],
    ['a TerminalError as a cause', caused(caused(new TerminalError('no')))],
    ['a text that jsonb does not take', failed('22P05')],
    ['a violated unique index', failed('23505')],
    ['a violated check behind an ORM', caused({ parent: failed('23514') })],
    ['a unique violation of Prisma', { code: 'P2002', clientVersion: '6.1.0' }],
  ])('%s is terminal', (_title, error) => {
    expect(classifyError(error, none)).toEqual(terminal)
  })

  test.each([
    ['an error', new Error('down')],
    ['a lost connection', failed('08006')],
    ['a failed serialisation', failed('40001')],
    ['a deadlock', failed('40P01')],
    ['a statement that was cancelled or out of time', failed('57014')],
    ['a session that was terminated', failed('57P01')],
    ['a missing table', failed('42P01')],
    ['what a trigger raised', failed('P0001')],
    ['a timeout', runtimeError('OUTBOX_HANDLER_TIMEOUT', 'too slow')],
    ['a lost lease', new LeaseLostError('gone')],
    ['a broken pipe', failed('EPIPE')],
    ['several failures, of which one may pass', new AggregateError([failed('23505'), failed('08006')])],
    ['a text', '23505'],
    ['a number', 23_505],
    ['nothing', undefined],
    ['null', null],
    ['a symbol', Symbol('odd')],
  ])('%s is transient', (_title, error) => {
    expect(classifyError(error, none)).toEqual(transient)
  })
})

describe('classifyError by terminalErrors', () => {
  const rules: Rules = { ...none, terminalErrors: [RangeError, Refused] }

  test('an instance is terminal, by itself and as a cause', () => {
    expect(classifyError(new Refused('no'), rules)).toEqual(terminal)
    expect(classifyError(new RangeError('no'), rules)).toEqual(terminal)
    expect(classifyError(caused(caused(new Refused('no'))), rules)).toEqual(terminal)
  })

  test('others follow the usual rules', () => {
    expect(classifyError(new TypeError('down'), rules)).toEqual(transient)
    expect(classifyError(failed('23505'), rules)).toEqual(terminal)
  })

  test('what cannot be compared is told, and the others still count', () => {
    const arrow = (() => {}) as never
    const mixed = { ...none, terminalErrors: [arrow, Refused] }

    expect(classifyError(new Refused('no'), mixed)).toMatchObject({
      ...terminal,
      trouble: { code: 'OUTBOX_INVALID_POLICY' },
    })
    expect(classifyError(new Error('down'), mixed)).toMatchObject({
      ...transient,
      trouble: { message: expect.stringContaining('a comparison with `terminalErrors` threw') },
    })
  })
})

describe('classifyError by the user’s classify', () => {
  test('its verdict stands above everything else', () => {
    expect(
      classifyError(new TerminalError('no'), { terminalErrors: [Error], classify: () => 'transient' }),
    ).toEqual(transient)
    expect(classifyError(new Error('down'), { ...none, classify: () => 'terminal' })).toEqual(terminal)
  })

  test('it is given the error as it was thrown', () => {
    const thrown = caused(new Error('inner'))

    expect(
      classifyError(thrown, { ...none, classify: (error) => (error === thrown ? 'terminal' : undefined) }),
    ).toEqual(terminal)
  })

  test('undefined leaves it to the usual rules, without trouble', () => {
    expect(
      classifyError(new Refused('no'), { terminalErrors: [Refused], classify: () => undefined }),
    ).toEqual(terminal)
    expect(classifyError(new Error('down'), { ...none, classify: () => undefined })).toEqual(transient)
  })

  test.each([null, false, 'Terminal', '', 0, {}, Promise.resolve('terminal')])(
    'an answer that is no verdict is told, and the usual rules hold (case %#)',
    (answer) => {
      const rules = { ...none, classify: () => answer as never }

      expect(classifyError(failed('23505'), rules)).toMatchObject({
        ...terminal,
        trouble: { code: 'OUTBOX_INVALID_POLICY' },
      })
      expect(classifyError(failed('40001'), rules)).toMatchObject({
        ...transient,
        trouble: {
          message: expect.stringContaining(
            "expected `classify` to return 'terminal', 'transient' or undefined, got",
          ),
        },
      })
    },
  )

  test.each([new TypeError('oops'), undefined, 'oops'])(
    'when it throws, that is told with its reason, and the usual rules hold (case %#)',
    (cause) => {
      const classify = (): never => {
        throw cause
      }

      expect(classifyError(failed('23505'), { ...none, classify })).toMatchObject({
        ...terminal,
        trouble: {
          code: 'OUTBOX_INVALID_POLICY',
          cause,
          message: expect.stringContaining('`classify` threw'),
        },
      })
    },
  )

  // Vitest fails a run with an unhandled rejection.
  test('the rejection of an async one ends nothing', async () => {
    const classify = (): never => Promise.reject(new Error('late')) as never

    expect(classifyError(new Error('down'), { ...none, classify })).toMatchObject(transient)
    await new Promise((resolve) => setImmediate(resolve))
  })
})

describe('classifyError of hostile errors', () => {
  const touchy = {
    get cause(): unknown {
      throw new Error('do not touch')
    },
    get code(): unknown {
      throw new Error('do not touch')
    },
  }

  // Made inside of the test: Vitest itself cannot hold a revoked proxy in its table.
  const makers = {
    'that caused itself': selfCaused,
    'with members that throw': () => touchy,
    'that is a revoked proxy': revoked,
    'that a revoked proxy caused': () => caused(revoked()),
    'without a prototype': () => Object.create(null) as unknown,
    'that is a function': () => selfCaused,
  }

  test.each(Object.entries(makers))('an error %s is transient, and throws nothing', (_title, make) => {
    expect(classifyError(make(), none)).toEqual(transient)
    expect(classifyError(make(), { ...none, terminalErrors: [Refused] }).verdict).toBe('transient')
  })

  test('whatever is thrown, there is a verdict', () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true }), (error) => {
        expect(['terminal', 'transient']).toContain(
          classifyError(error, { ...none, terminalErrors: [Refused] }).verdict,
        )
      }),
    )
  })
})
