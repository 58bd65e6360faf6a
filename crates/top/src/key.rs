//! Keys and the mouse, without a terminal.

/// A key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    /// A character.
    Char(char),
    /// A character with Ctrl.
    Ctrl(char),
    /// A function key.
    Function(u8),
    /// Left.
    Left,
    /// Right.
    Right,
    /// Left with Shift.
    ShiftLeft,
    /// Right with Shift.
    ShiftRight,
    /// Left with Ctrl.
    CtrlLeft,
    /// Right with Ctrl.
    CtrlRight,
    /// Up.
    Up,
    /// Down.
    Down,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// Home.
    Home,
    /// End.
    End,
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Tab.
    Tab,
    /// Tab with Shift.
    BackTab,
    /// Backspace.
    Backspace,
}

/// Action of the mouse.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mouse {
    /// A click.
    Click,
    /// The button is held and the mouse moved.
    Drag,
    /// The wheel, up.
    WheelUp,
    /// The wheel, down.
    WheelDown,
}
