export interface Screen {
  /** True when frames can be drawn over each other: in a terminal, but not in a log that looks like one. */
  readonly isLive: boolean
  /** Prints a line for good, above the frame if there is one. */
  say(line: string): void
  /** Draws a frame over the last one. */
  draw(lines: readonly string[]): void
  /** Leaves the last frame where it is and gives the terminal back. Nothing is drawn after that. */
  close(): void
}

// Lines are clipped at the right edge, not wrapped: a frame with wrapped lines could not be drawn over.
const prepare = '\x1b[?25l\x1b[?7l'
const giveBack = '\x1b[?25h\x1b[?7h'
const clearToEndOfLine = '\x1b[K'
const clearBelow = '\x1b[J'
// A frame, a line above it and the cursor's below.
const smallestHeight = 15

export function openScreen(output: NodeJS.WriteStream): Screen {
  let frame: readonly string[] = []
  let isClosed = false
  // One write for a whole frame, and nothing is cleared before its successor is there: that is why it does not flicker.
  const redraw = (above: string, next: readonly string[]): void => {
    const home = frame.length === 0 ? prepare : `\x1b[${frame.length}A\r`
    output.write(home + above + next.map((line) => `${line}${clearToEndOfLine}\n`).join('') + clearBelow)
    frame = next
  }
  return {
    isLive: canBeLive(output),
    say: (line) => {
      if (frame.length === 0) output.write(`${line}\n`)
      else redraw(`${line}${clearToEndOfLine}\n`, frame)
    },
    draw: (lines) => {
      if (!isClosed) redraw('', lines)
    },
    close: () => {
      if (frame.length > 0) output.write(giveBack)
      frame = []
      isClosed = true
    },
  }
}

function canBeLive({ isTTY, rows }: NodeJS.WriteStream): boolean {
  const { CI, TERM } = process.env
  return isTTY && rows >= smallestHeight && !CI && TERM !== 'dumb'
}
