import { styleText } from 'node:util'

type Style = 'bold' | 'cyan' | 'dim' | 'green' | 'red' | 'yellow'

export type Paint = (style: Style, text: string) => string

/** Colours for a terminal that has them; none with NO_COLOR, nor in a file. */
export function painter(output: NodeJS.WriteStream): Paint {
  // `hasColors` reads NO_COLOR and TERM. Only terminals have it.
  const isColourful = output.isTTY && output.hasColors()
  return isColourful ? (style, text) => styleText(style, text) : (_style, text) => text
}

export function thousands(count: number): string {
  return count.toLocaleString('en')
}
