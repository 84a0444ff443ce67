import { PassThrough } from 'node:stream'
import type { OutboxEvent } from 'postbox'
import { expect, test, vi } from 'vitest'
import { countEvents } from '../../examples/shop/src/events.ts'
import type { View } from '../../examples/shop/src/frame.ts'
import { frameLines, sparklinePoints } from '../../examples/shop/src/frame.ts'
import { plainHeading, plainRow } from '../../examples/shop/src/plain.ts'
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
    remindersSent: many,
    delivered: many,
    retried: many,
    lastFailure: 'Error: '.repeat(99),
    died: many,
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
  tally: { ...fullView.tally, lastFailure: '', lastDeath: '' },
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

test('a frame has at most 14 lines', () => {
  expect(frameLines(fullView, (_style, text) => text).length).toBeLessThanOrEqual(14)
})

test('the largest numbers of a frame do not touch their labels', () => {
  const text = frameLines(fullView, (_style, line) => line).join('\n')

  expect(text).not.toMatch(/[a-z]\d/)
})

test('a frame counts retries, timers and dead letters, and says why the last were retried and died', () => {
  const tally = {
    retried: 11,
    lastFailure: 'CarrierDown: no answer',
    timersArmed: 22,
    timersCancelled: 33,
    remindersSent: 34,
    died: 99,
    deadReplayed: 44,
    lastDeath: 'Error: gone',
  }
  const view = { ...emptyView, tally: { ...emptyView.tally, ...tally }, dead: 55 }

  const text = frameLines(view, (_style, line) => line).join('\n')

  expect(text).toMatch(/deliveries retried +11\n.* retried after +CarrierDown: no answer\n/)
  expect(text).toMatch(/timers armed +22 +cancelled +33 +fired +34\n/)
  expect(text).toMatch(/dead letters ever +99 +replayed +44 +waiting +55\n.* died of +Error: gone\n/)
})

test('what a delivery failed of is kept apart from what a message died of', () => {
  const tally = { ...fullView.tally, retried: 0, died: 0 }
  const tell = countEvents(tally)

  tell({ kind: 'retried', error: new Error('down') } as OutboxEvent)
  tell({ kind: 'dead', error: new Error('gone') } as OutboxEvent)

  expect(tally).toMatchObject({ retried: 1, lastFailure: 'Error: down', died: 1, lastDeath: 'Error: gone' })
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

test('a plain row of a long day fits 80 columns, and its numbers do not touch', () => {
  const tally = { ...fullView.tally, ordersDeclined: 999_999, died: 99_999, remindersSent: 999_999 }

  const row = plainRow({ ...fullView, tally })

  expect(row.length).toBe(80)
  expect(row.split(/(?<!\d s) +/)).toHaveLength(10)
})

test('each number of a plain row stands below its heading', () => {
  const tally = { ordersPlaced: 1, ordersDeclined: 2, delivered: 3, retried: 4, died: 6, deadReplayed: 7 }
  const timers = { timersCancelled: 8, remindersSent: 9 }
  const view = { ...emptyView, tally: { ...emptyView.tally, ...tally, ...timers }, waiting: 5 }

  const columns = endsOfWords(plainHeading[1]!).map(([word, end]) => [word, plainRow(view)[end - 1]])

  expect(columns).toEqual([
    ['time', 's'],
    ['orders', '1'],
    ['back', '2'],
    ['delivered', '3'],
    ['retried', '4'],
    ['waiting', '5'],
    ['ever', '6'],
    ['replayed', '7'],
    ['cancelled', '8'],
    ['fired', '9'],
  ])
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

function endsOfWords(line: string): [word: string, end: number][] {
  return [...line.matchAll(/\S+/g)].map(({ 0: word, index }) => [word, index + word.length])
}

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
