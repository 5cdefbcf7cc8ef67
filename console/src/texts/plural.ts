/** Numbers with what they count. */

import { count } from '../ui/format'

/** The word for so many; numbers come as they are read, `2+` too. */
export const noun = (number: number | string, one: string, several: string) => (String(number) === '1' ? one : several)

/** `1 job`, `1,200 jobs`. */
export const plural = (number: number, one: string, several: string) =>
  `${count(number)} ${noun(number, one, several)}`
