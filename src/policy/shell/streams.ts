/** Redirections that reach no file. */
import type { ShellWord } from './shell-word.ts'
import { literalOf } from './shell-word.ts'

const STREAM = /^\/dev\/(null|zero|full|random|urandom|stdin|stdout|stderr|tty|fd\/\d+)$/

export const isStream = (target: ShellWord): boolean => STREAM.test(literalOf(target) ?? '')
