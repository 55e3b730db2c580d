// A setting of a process, declared once. Its option, its environment variable, its key in a settings file, its help and its entry in
// docs/SETTINGS.md are made from the declaration. All functions here are pure.

/** How a settings file writes it: `path` and `text` in quotes, `number` and `switch` bare, `list` in brackets. */
export type SettingKind = 'text' | 'path' | 'number' | 'switch' | 'list'

/** A value that does not fit, where the reason says more than what the setting takes; follows its name. */
export class Wrong {
  readonly why: string

  constructor(why: string) {
    this.why = why
  }
}

export type Setting<T> = About & {
  readonly kind: SettingKind
  /** The only values there are; null: there are others. */
  readonly choices: readonly string[] | null
  /** As it would be written; null: none. */
  readonly default: string | null
  /** Null: it is not what the setting takes. A setting that is no list is given one text. */
  readonly parse: (texts: readonly string[]) => T | Wrong | null
}

type About = {
  /** What help shows in the place of a value: `host:port`. */
  readonly value: string
  /** Its environment variable; null: it has none. */
  readonly variable: string | null
  /** Its values, in words. */
  readonly takes: string
  readonly meaning: string
  /** Who has to change it, and when. */
  readonly change: string
  /** What holds without it, where `default` does not say so. */
  readonly unset?: string
  /** It may hold a secret by mistake, or is one to some: not repeated in messages, and shown without its path. */
  readonly isPrivate?: true
  /** A variable that another program sets, such as systemd: read where neither option, own variable nor file has a value. */
  readonly standIn?: string
  /** A variable that is set and empty counts as none. Elsewhere it is an error. */
  readonly emptyIsNone?: true
  /** The option belongs to every command and is not declared with the others. */
  readonly isGlobal?: true
}

export type Settings = Readonly<Record<string, Setting<unknown>>>

type OrNull<T, D> = D extends string ? T : T | null

const declared = <T>(about: About, rest: Omit<Setting<T>, keyof About>): Setting<T> => ({ ...about, ...rest })

const first =
  <T>(read: (text: string) => T) =>
  (texts: readonly string[]): T =>
    read(texts[0] ?? '')

/** `read`: null or the reason where a text does not fit. */
export const textSetting = <T, const D extends string | null>(
  read: (text: string) => T | Wrong | null,
  standard: D,
  about: About,
): Setting<OrNull<T, D>> =>
  declared(about, {
    kind: 'text',
    choices: null,
    default: standard,
    parse: first(read),
  })

/** A relative path in a file counts from the folder of that file. */
export const pathSetting = <const D extends string | null>(
  standard: D,
  about: Omit<About, 'takes'> & { readonly takes?: string },
): Setting<OrNull<string, D>> =>
  declared(
    { takes: 'a path', ...about },
    {
      kind: 'path',
      choices: null,
      default: standard,
      parse: first((text) => text),
    },
  )

export const numberSetting = <const D extends string | null>(
  { least, most }: { readonly least: number; readonly most: number },
  standard: D,
  about: Omit<About, 'takes' | 'value'>,
): Setting<OrNull<number, D>> => {
  const read = (text: string): number | null => {
    const number = /^\d{1,9}$/.test(text) ? Number(text) : -1
    return number >= least && number <= most ? number : null
  }
  const takes = `a number from ${least} to ${most}`
  return declared(
    { ...about, takes, value: 'number' },
    {
      kind: 'number',
      choices: null,
      default: standard,
      parse: first(read),
    },
  )
}

export const choiceSetting = <const C extends string, const D extends NoInfer<C> | null>(
  choices: readonly C[],
  standard: D,
  about: Omit<About, 'takes'> & { readonly takes?: string },
): Setting<OrNull<C, D>> =>
  declared(
    { takes: `one of ${choices.join(', ')}`, ...about },
    {
      kind: 'text',
      choices,
      default: standard,
      parse: first((text) => choices.find((one) => one === text) ?? null),
    },
  )

const on = ['true', '1']
const off = ['false', '0']

/** Off unless it is turned on. */
export const switchSetting = (about: Omit<About, 'takes' | 'value'>): Setting<boolean> =>
  declared(
    { ...about, takes: 'true or false (as a variable also 1 or 0)', value: '', emptyIsNone: true },
    {
      kind: 'switch',
      choices: null,
      default: 'false',
      parse: first((text) => (on.includes(text) ? true : off.includes(text) ? false : null)),
    },
  )

/** Given several times as an option, with commas as a variable. `standard`: as a variable would have it. */
export const listSetting = <T>(
  read: (text: string) => T | Wrong | null,
  standard: string | null,
  about: About,
): Setting<readonly T[]> =>
  declared<readonly T[]>(about, {
    kind: 'list',
    choices: null,
    default: standard,
    parse: (texts) => {
      const items: T[] = []
      for (const text of texts) {
        const item = read(text)
        if (item === null) return null
        if (item instanceof Wrong) return item
        items.push(item)
      }
      return items
    },
  })

/** `--node-listen` of `nodeListen`. */
export const optionName = (name: string): string =>
  `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`

/** `node_listen` of `nodeListen`. */
export const keyName = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** As commander takes them: `--node-listen <host:port>`. */
export const optionFlags = (name: string, { kind, value }: Pick<Setting<unknown>, 'kind' | 'value'>): string =>
  kind === 'switch' ? optionName(name) : `${optionName(name)} <${value}>`

/** What help says of it. */
export const settingHelp = (setting: Omit<Setting<unknown>, 'parse'>): string => {
  const meaning = setting.meaning.replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase())
  const standard = defaultWords(setting)
  const more = [standard === null ? null : `default: ${standard}`, setting.variable].filter((part) => part !== null)
  return more.length === 0 ? meaning : `${meaning} (${more.join('; ')})`
}

/** What holds where it is not set; null: nothing that has to be explained. */
export const defaultWords = (setting: Omit<Setting<unknown>, 'parse'>): string | null =>
  setting.kind === 'switch' ? null : (setting.default ?? setting.unset ?? null)

export const listOf = (text: string): readonly string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
