const CLOCK = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
})

/** The time of day to the millisecond. */
export function clock(at: string | number): string {
  return CLOCK.format(new Date(at))
}
