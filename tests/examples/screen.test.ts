import { PassThrough } from 'node:stream'
import { expect, test, vi } from 'vitest'
import type { View } from '../../examples/shop/src/frame.ts'
import { frameLines, plainRow, sparklinePoints } from '../../examples/shop/src/frame.ts'
import { openScreen } from '../../examples/shop/src/screen.ts'

const many = 9_999_999
const fullView: View = {
  state: 'open',
  seconds: 86_400,
  tally: {
    ordersPlaced: many,
    ordersDeclined: many,
    couponsKept: many,
    couponsWithdrawn: many,
    timersArmed: many,
    timersCancelled: many,
    delivered: many,
    retried: many,
    deadReplayed: many,
    lastDeath: 'Error: '.repeat(99),
  },
  waiting: 999_999,
  dead: 10_000,
  rate: 99_999,
  past: Array(sparklinePoints).fill({ rate: 99_999, waiting: 999_999 }),
}
const emptyView: View = {
  ...fullView,
  seconds: 0,
  tally: { ...fullView.tally, lastDeath: '' },
  waiting: 0,
  dead: 0,
  rate: 0,
  past: [],
}

test.each(['open', 'closing', 'closed'] as const)('a frame of a shop that is %s fits 80 columns', (state) => {
  const lines = frameLines({ ...fullView, state }, (_style, text) => text)

  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80)
})

test('all frames have the same height, so that each covers the one before', () => {
  const heights = [fullView, emptyView].map((view) => frameLines(view, (_style, text) => text).length)

  expect(heights[0]).toBe(heights[1])
})

test('a frame counts retries, timers and dead letters, and says what the last message died of', () => {
  const tally = {
    retried: 11,
    timersArmed: 22,
    timersCancelled: 33,
    deadReplayed: 44,
    lastDeath: 'Error: gone',
  }
  const view = { ...emptyView, tally: { ...emptyView.tally, ...tally }, dead: 55 }

  const text = frameLines(view, (_style, line) => line).join('\n')

  expect(text).toMatch(/deliveries retried +11\n/)
  expect(text).toMatch(/timers armed +22 +timers cancelled +33\n/)
  expect(text).toMatch(/dead letters +55 +dead letters replayed +44\n.* died of +Error: gone\n/)
})

test('frames are drawn only in a terminal that is higher than a frame and a line above it', () => {
  vi.stubEnv('CI', '')
  vi.stubEnv('TERM', 'xterm')
  const needed = frameLines(fullView, (_style, text) => text).length + 2
  const isLive = (rows: number): boolean => openScreen({ isTTY: true, rows } as NodeJS.WriteStream).isLive

  const answers = [isLive(needed - 1), isLive(needed)]
  vi.unstubAllEnvs()

  expect(answers).toEqual([false, true])
})

test('a plain row fits 80 columns', () => {
  expect(plainRow(fullView).length).toBeLessThanOrEqual(80)
})

test('a closed screen has given the cursor and the wrapping of lines back, and takes no frame', () => {
  const { screen, written } = openedScreen()

  screen.draw(['frame'])
  screen.close()
  screen.draw(['a frame that comes too late'])

  expect(written().startsWith('\x1b[?25l\x1b[?7l')).toBe(true)
  expect(written().endsWith('\x1b[?25h\x1b[?7h')).toBe(true)
})

test('a screen that drew nothing writes no escape sequence', () => {
  const { screen, written } = openedScreen()

  screen.say('a line')
  screen.close()

  expect(written()).toBe('a line\n')
})

test('a line said during a frame stands above it, and the frame is drawn again', () => {
  const { screen, written } = openedScreen()

  screen.draw(['first', 'second'])
  screen.say('a line')

  expect(written().split('\x1b[2A\r')[1]).toBe('a line\x1b[K\nfirst\x1b[K\nsecond\x1b[K\n\x1b[J')
})

function openedScreen() {
  const output = new PassThrough({ encoding: 'utf8' })
  const screen = openScreen(output as unknown as NodeJS.WriteStream)
  let text = ''
  const written = (): string => {
    text += output.read() ?? ''
    return text
  }
  return { screen, written }
}
