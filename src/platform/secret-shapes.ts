// The shapes of secrets. Text from outside that is stored, printed or answered is checked here: people paste tokens into
// reasons, and programs put keys into error messages.

/**
 * Tokens and keys of Muster's own; tokens of Vault, and of service accounts (JWT); private keys in PEM, also those that were cut off before their end; and the password
 * in the address of a database. A body ends at five dashes whatever follows them, so that no text takes longer than its
 * length.
 */
const secretShapes = new RegExp(
  [
    '(?:enroll|recover|repair|muster_key)_[A-Za-z0-9_-]{43}',
    '(?<![A-Za-z0-9_.-])hv[sbr]\\.[A-Za-z0-9_-]{24,}',
    '(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\\.eyJ[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]{8,}',
    '-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----' +
      '(?:[^"-]*(?:-{1,4}[^"-]+)*-----END [A-Z ]{0,32}PRIVATE KEY-----|(?:[A-Za-z0-9+/=\\s]|\\\\[nr])*)',
    '(?<=\\bpostgres(?:ql)?://[^\\s:/@"\'\\\\]{0,128}:)(?!PASSWORD@HOST)[^\\s"\'\\\\]{1,512}(?=@)',
  ].join('|'),
  'g',
)

/** Takes out every secret Muster can recognise. In JSON it stays JSON. */
export const redactSecrets = (text: string): string => text.replace(secretShapes, '[secret]')
